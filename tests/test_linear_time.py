"""Text functions that meet foreign text take time that grows with the text alone, whatever it is.

Each is given text of one unit again and again, once and four times as long. CPU time is counted.
"""

import io
import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from apps.chat.answering import titles
from apps.chat.conversation_list import search
from apps.chat.knowledge.sentences import mark_sentences
from apps.chat.presets.system_prompts import changing_parts
from apps.chat.templatetags import json_tree
from apps.chat.tools import fetching
from apps.chat.transfer import open_webui, read
from apps.chat.transfer.normalise import make_call
from apps.core.schemas.argument_validation import argument_problems
from apps.core.text import markdown
from apps.core.text.storable import to_storable
from apps.llm.failures import error_text
from apps.mcp import results
from tests.cpu_time import GROWTH, growth_problem

SIZE = 4_000  # characters

UNITS = [
    *("http://a", "http://a.b\n", "https://a.b/(", "www.", "a@", "a@b.c ", "a.b ", "mailto:a@b"),
    *("```\n", "```json\n", "`", "``", "~~~\n", "$", "$$", "\\(", "\\[\n", "\\"),
    *("[", "![", "](", "[a](b)", "[a]: b\n", "*a ", "**", "_a_ ", "~~", "<", "<a ", "<!--"),
    *("> ", ">\n", "- ", "- a\n", "1. ", "# ", "| a ", "|a|\n|-|\n", "    a\n", "\t", " "),
    *('<details type="reasoning">', '<details type="reasoning" a="', "<summary>", "</details>"),
    *("<br ", "<title>", "<script>", "</p>", "\ue200", "\ue200\ue201", "{{ ", "{AA", "1 "),
    *("{", '{"a":', "[[", '"', '"a",', "today is ", "é", "\U0001f600", "\u202e", "\x01"),
    *(". [1]", "[1,", "&", "&#", "\n", "\r", "\x02", "1.1.26 "),
]  # fmt: skip


# What comes once, before the unit.
AFTER = [("```", "\n"), ("```json\n{", " "), ("<details ", " "), ('"', "\\"), ("{{", " ")]


def numbered(count: int) -> str:
    return " ".join(
        f"{number % 31 + 1}.{number % 12 + 1}.{1000 + number}" for number in range(count)
    )


def texts() -> Iterator[tuple[str, str, str]]:
    """What it is, and the text once and four times as long."""
    for start, unit in [*(("", unit) for unit in UNITS), *AFTER]:
        short, long = (start + unit * (size // len(unit)) for size in (SIZE, GROWTH * SIZE))
        yield f"{start}{unit}", short, long
    yield "dates", numbered(SIZE // 10), numbered(GROWTH * SIZE // 10)


def chatgpt(text: str) -> object:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}}
    item = {"mapping": {"a": {"id": "a", "parent": None, "message": message}}}
    return list(read.read(io.BytesIO(json.dumps([item]).encode())))


def told(text: str) -> object:
    block = SimpleNamespace(type="text", text=text)
    return results.result_text(SimpleNamespace(content=[block], structured_content=None))


# A text that was rendered before is not rendered again.
NEW = itertools.count()
FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "Markdown": lambda text: markdown.render(f"{next(NEW)} {text}"),
    "JSON tree": json_tree.parse,
    "ChatGPT's export": chatgpt,
    "Open WebUI's export": lambda text: open_webui.parse_answer(text, None),
    "a call in an export": lambda text: make_call(text, text),
    "a web page": fetching.text_of_html,
    "an MCP result": told,
    "a system prompt": changing_parts,
    "a title": lambda text: (titles.parse_title(text), titles.first_line(f"a{text}")),
    "a snippet": search.split_snippet,
    "words to find": search.split_query,
    "cited sentences": lambda text: mark_sentences("Ten years. " * 100, f"{text}[1].", 1),
    "to_storable": to_storable,
    "a server's error": error_text.error_message,
    "arguments": lambda text: argument_problems(
        {"a": text, text: 1},
        {
            "type": "object",
            "properties": {"a": {"pattern": r"^(\S+\s*)+$"}},
            "patternProperties": {"^(a|a)*$": {}},
        },
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_grows_with_the_text_alone(name: str) -> None:
    function = FUNCTIONS[name]
    grown = []
    for what, short, long in texts():
        function(what)  # compiles what is compiled once
        if problem := growth_problem(partial(function, short), partial(function, long)):
            grown.append(f"{what!r}: {problem}")
    assert grown == []
