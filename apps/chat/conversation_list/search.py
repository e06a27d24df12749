"""Full-text search in messages: FTS5 in SQLite, a GIN index in PostgreSQL.

The database keeps the index up to date: triggers on the message table in SQLite, an index over an
expression in PostgreSQL. It is created after each `migrate`, because SQLite changes a table by
copying it, which drops its triggers.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from apps.chat.models import Conversation

LIMIT = 50
HITS_PER_CONVERSATION = 3
# Hits to choose from, so that one long conversation does not hide the others.
NEWEST = 2000
MAX_WORDS = 12
SNIPPET_WORDS = 12  # more do not fit in the list, and would push the hit out of sight
MARK, UNMARK = "\x02", "\x03"

_SQLITE = (
    """CREATE VIRTUAL TABLE IF NOT EXISTS chat_message_words USING fts5(
        content, content='chat_message', content_rowid='id',
        tokenize="unicode61 remove_diacritics 2")""",
    """CREATE TRIGGER IF NOT EXISTS chat_message_words_insert AFTER INSERT ON chat_message BEGIN
        INSERT INTO chat_message_words(rowid, content) VALUES (new.id, new.content); END""",
    """CREATE TRIGGER IF NOT EXISTS chat_message_words_delete AFTER DELETE ON chat_message BEGIN
        INSERT INTO chat_message_words(chat_message_words, rowid, content)
        VALUES ('delete', old.id, old.content); END""",
    """CREATE TRIGGER IF NOT EXISTS chat_message_words_update
        AFTER UPDATE OF content ON chat_message BEGIN
        INSERT INTO chat_message_words(chat_message_words, rowid, content)
        VALUES ('delete', old.id, old.content);
        INSERT INTO chat_message_words(rowid, content) VALUES (new.id, new.content); END""",
)
_TRIGGERS = 3
# PostgreSQL refuses to index a text with more than 1 MB of different words.
_POSTGRESQL = """CREATE INDEX IF NOT EXISTS chat_message_words ON chat_message
    USING gin (to_tsvector('simple', left(content, 300000)))"""

# Snippets read the text, so they are made only for the hits that are chosen.
_CHOSEN = """
SELECT id, conversation_id, title, role FROM (
    SELECT newest.*, row_number() OVER (PARTITION BY conversation_id ORDER BY id DESC) AS place
    FROM ({newest}) AS newest
) AS placed WHERE place <= %s ORDER BY id DESC LIMIT %s"""
_NEWEST_SQLITE = """
SELECT m.id, m.role, m.conversation_id, c.title
FROM chat_message_words
JOIN chat_message m ON m.id = chat_message_words.rowid
JOIN chat_conversation c ON c.id = m.conversation_id
WHERE chat_message_words MATCH %s AND c.owner_id = %s AND c.deleted_at IS NULL
  AND c.temporary_until IS NULL AND m.deleted_at IS NULL
ORDER BY chat_message_words.rowid DESC LIMIT %s"""
# The plus makes SQLite scan the hits once, instead of searching once per chosen row.
_FIND_SQLITE = f"""
WITH chosen AS MATERIALIZED ({_CHOSEN.format(newest=_NEWEST_SQLITE)})
SELECT chosen.id, chosen.role, chosen.conversation_id, chosen.title,
       snippet(chat_message_words, 0, %s, %s, '…', {SNIPPET_WORDS})
FROM chat_message_words JOIN chosen ON chosen.id = +chat_message_words.rowid
WHERE chat_message_words MATCH %s AND chat_message_words.rowid >= (SELECT min(id) FROM chosen)
ORDER BY chosen.id DESC"""  # noqa: S608 - of constants alone
_NEWEST_POSTGRESQL = """
SELECT m.id, m.role, m.conversation_id, c.title
FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id
WHERE to_tsvector('simple', left(m.content, 300000)) @@ to_tsquery('simple', %s)
  AND c.owner_id = %s AND c.deleted_at IS NULL
  AND c.temporary_until IS NULL AND m.deleted_at IS NULL
ORDER BY m.id DESC LIMIT %s"""
_FIND_POSTGRESQL = f"""
SELECT chosen.id, chosen.role, chosen.conversation_id, chosen.title,
       ts_headline('simple', left(m.content, 300000), to_tsquery('simple', %s), %s)
FROM ({_CHOSEN.format(newest=_NEWEST_POSTGRESQL)}) AS chosen
JOIN chat_message m ON m.id = chosen.id ORDER BY chosen.id DESC"""  # noqa: S608 - as above


@dataclass(frozen=True)
class SnippetPart:
    """A part of a snippet: a word that was searched for, or the text around it."""

    text: str
    is_hit: bool


@dataclass(frozen=True)
class Hit:
    """A message, or a conversation whose title has the words."""

    conversation: int
    title: str
    message: int | None
    role: str
    snippet: Sequence[SnippetPart]
    more: int = 0
    """Number of other hits in the same conversation, if grouped."""


def group_by_conversation(hits: Iterable[Hit]) -> list[Hit]:
    """Return one hit per conversation, in order: a message rather than the title."""
    found: dict[int, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.conversation, []).append(hit)
    return [
        replace(next((hit for hit in same if hit.message), same[0]), more=len(same) - 1)
        for same in found.values()
    ]


def create_index(database: BaseDatabaseWrapper) -> None:
    """Create and fill the index if it is missing. Cheap if it exists."""
    if "chat_message" not in database.introspection.table_names():
        return
    with database.cursor() as cursor:
        if database.vendor == "sqlite":
            _create_in_sqlite(cursor)
        elif database.vendor == "postgresql":
            cursor.execute(_POSTGRESQL)


def _create_in_sqlite(cursor: Any) -> None:
    cursor.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name LIKE %s",
        ["chat_message_words_%"],
    )
    if cursor.fetchone()[0] == _TRIGGERS:
        return
    for statement in _SQLITE:
        cursor.execute(statement)
    cursor.execute("INSERT INTO chat_message_words(chat_message_words) VALUES ('rebuild')")


def find(owner: User, text: str, *, limit: int = LIMIT) -> list[Hit]:
    """Return titles and messages of a person that have all these words, the newest first.

    A word also finds longer ones that begin with it. Titles come first, and each conversation has
    only a few hits. Hits are not ranked: all have all the words, and ranking takes forty times as
    long.
    """
    words = split_query(text)
    if not words:
        return []
    return [*_titles(owner, words, limit), *_messages(owner, words, limit)][:limit]


def split_query(text: str) -> list[str]:
    return [word for word in text.replace("\0", " ").split() if re.search(r"\w", word)][:MAX_WORDS]


def _titles(owner: User, words: list[str], limit: int) -> list[Hit]:
    found = Conversation.objects.owned_by(owner)
    for word in words:
        found = found.filter(title__icontains=word)
    rows = found.values_list("pk", "title")[:limit]
    return [Hit(pk, title, None, "", [SnippetPart(title, is_hit=False)]) for pk, title in rows]


def _messages(owner: User, words: list[str], limit: int) -> list[Hit]:
    which = (owner.pk, NEWEST, HITS_PER_CONVERSATION, limit)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            query = " AND ".join('"{}"*'.format(word.replace('"', '""')) for word in words)
            cursor.execute(_FIND_SQLITE, [query, *which, MARK, UNMARK, query])
        else:
            query = " & ".join(f"'{_quoted(word)}':*" for word in words)
            size = f"MaxWords={SNIPPET_WORDS}, MinWords={SNIPPET_WORDS // 2}, MaxFragments=1"
            options = f"StartSel={MARK}, StopSel={UNMARK}, {size}"
            cursor.execute(_FIND_POSTGRESQL, [query, options, query, *which])
        rows = cursor.fetchall()
    return [
        Hit(conversation, title, message, role, split_snippet(snippet))
        for message, role, conversation, title, snippet in rows
    ]


def _quoted(word: str) -> str:
    return word.replace("\\", "\\\\").replace("'", "''")


def split_snippet(snippet: str) -> list[SnippetPart]:
    """Split a snippet at its marks."""
    found = []
    for number, part in enumerate(re.split(f"[{MARK}{UNMARK}]", " ".join(snippet.split(" ")))):
        if part:
            found.append(SnippetPart(part, is_hit=number % 2 == 1))
    return found
