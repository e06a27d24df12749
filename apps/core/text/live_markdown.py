"""Markdown that is still being written, as final HTML of its finished blocks and the open one.

The rules are those of `markdown.render`: a block is parsed by the same parser once nothing that
follows can change it, and its HTML is final. Only what is after it is parsed again.

One thing is known at the end alone: an address given below its link (`[1]: https://…`). Then
`is_exact` is False, and the finished text has to be rendered as a whole.
"""

import re
from copy import deepcopy

from markdown_it.common.utils import normalizeReference
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType

from apps.core.text import markdown, unfinished
from apps.core.text.html_changes import CHUNK

CHUNK_CHARACTERS = 800

_FENCE = re.compile(r"(`{3,}|~{3,})([^`\n]*)\n")
# An answer that is JSON is shown as code while it is written.
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[{\[\"])")
_MAY_BE_JSON = re.compile(r"\s*[{\[]\s*")
_ENDED_BY_BLANK = {"paragraph_open", "table_open", "blockquote_open"}
_ENDED_BY_LINE = {"heading_open", "hr", "math_block"}
_GOES_ON = re.compile(r"[\s\-*+0-9]")  # as the first character after a list, or code, and a blank
_LABEL = re.compile(r"\[([^\[\]]{1,200})\]")
_DEFINITION = re.compile(r" {0,3}\[[^\n]*\]:")


class LiveMarkdown:
    """Renders one text while it grows.

    live = LiveMarkdown()
    live.add("# Tea\n\nGreen **or")
    live.render()
    live.blocks  # ["<h1>Tea</h1>"]: final
    live.open    # ["<p>Green <strong>or</strong></p>"]: as it stands
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.open: list[str] = []
        self.is_exact = True
        """False if `markdown.render` of the text gives something else than its blocks."""
        self._known: EnvType = {}
        self._text = ""
        """What is not in `blocks` yet."""
        self._ends_with_return = False
        self._missing: set[str] = set()
        """What may be the name of a link whose address is given below."""
        self._is_json: bool | None = None
        """None until that is known."""
        self._code = _Code()

    @property
    def open_characters(self) -> int:
        """Length of what is parsed again each time."""
        return len(self._text)

    def add(self, text: str) -> None:
        if self._ends_with_return:
            text = text.removeprefix("\n")
        self._ends_with_return = text.endswith("\r")
        self._text += text.replace("\r\n", "\n").replace("\r", "\n")

    def render(self) -> None:
        """Update `blocks` and `open`."""
        if self._is_json is None:
            self._is_json = self._looks_like_json()
        if self._is_json:
            self.is_exact = False
            self.open = [self._code.render("json", self._text)]
            return
        while self._close_blocks():
            pass
        self.open = self._render_open()

    def finish(self) -> None:
        """Update `blocks` after the last character; nothing is open then."""
        self._close(len(self._text))
        self.open = []

    def _looks_like_json(self) -> bool | None:
        if _JSON.match(self._text):
            return True
        return None if _MAY_BE_JSON.fullmatch(self._text) or not self._text.strip() else False

    def _close_blocks(self) -> bool:
        """Close what is finished; return True if there may be more."""
        fence = _FENCE.match(self._text)
        end = self._end_of_fence(fence) if fence else self._end_of_finished()
        if end:
            self._close(end)
        return bool(end)

    def _end_of_fence(self, fence: re.Match[str]) -> int:
        """Return where the fenced code that the open text begins with ends; 0 if it is open."""
        mark = fence[1]
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\n", re.MULTILINE)
        # A line may have been half there the last time.
        start = self._text.rfind("\n", 0, max(fence.end(), self._code.searched)) + 1
        found = closing.search(self._text, max(start, fence.end()))
        self._code.searched = len(self._text)
        return found.end() if found else 0

    def _end_of_finished(self) -> int:
        """Return where the blocks end that nothing can change which may follow."""
        head, newline, tail = self._text.rpartition("\n")
        complete = head + newline
        starts = [token for token in _parse_blocks(complete) if _is_start(token)]
        if not starts:
            return 0
        lines = complete.split("\n")[:-1]
        last = starts[-1]
        assert last.map is not None
        line = len(lines) if _is_finished(last, lines, tail) else last.map[0]
        for limit in (unfinished.open_formula(lines), _open_definition(lines)):
            if limit is not None and limit < line:
                line = max((t.map[0] for t in starts if t.map and t.map[0] <= limit), default=limit)
        return sum(len(text) + 1 for text in lines[:line])

    def _close(self, end: int) -> None:
        closed, self._text = self._text[:end], self._text[end:]
        self._code = _Code()
        self.blocks += markdown.blocks_of(closed, self._known)
        known = self._known.get("references", {})
        if not self._missing.isdisjoint(known):
            self.is_exact = False
        labels = {normalizeReference(label) for label in _LABEL.findall(closed)}
        self._missing |= labels - known.keys()

    def _render_open(self) -> list[str]:
        if self._is_json is None:
            return []
        if fence := _FENCE.match(self._text):
            language = (fence[2].split() or [""])[0]
            return [self._code.render(language, self._text[fence.end() :], fence[1])]
        text = unfinished.complete_blocks(self._text)
        return markdown.blocks_of(text, deepcopy(self._known), _parser) if text.strip() else []


class _Code:
    """An open block of code: what is not in its last lines is not coloured again.

    At the end of a chunk the colours begin anew. The finished block is coloured as a whole.
    """

    def __init__(self) -> None:
        self.searched = 0
        """Up to here its end was looked for."""
        self._chunks: list[str] = []
        """HTML of what is not coloured again."""
        self._coloured = 0
        """Up to here."""

    def render(self, language: str, code: str, mark: str = "") -> str:
        head, newline, tail = code.rpartition("\n")
        if mark and tail.strip() and not tail.strip().strip(mark[0]):
            code = head + newline  # it may be the fence's end
        self._colour_chunks(language, code)
        # Without the end of its last line: the caret stands behind what was written.
        rest = markdown.sanitised(markdown.coloured(language, code[self._coloured :])).removesuffix(
            "\n"
        )
        shell = markdown.sanitised(markdown.code_block(language, "")).strip()
        before, after = shell.split("</code>")
        return f"{before}{''.join(self._chunks)}{rest}</code>{after}"

    def _colour_chunks(self, language: str, code: str) -> None:
        while len(code) - self._coloured > CHUNK_CHARACTERS:
            end = code.find("\n", self._coloured + CHUNK_CHARACTERS) + 1
            if not end:
                return
            html = markdown.coloured(language, code[self._coloured : end])
            self._chunks.append(f"{CHUNK}{markdown.sanitised(html)}</span>")
            self._coloured = end


def _parse_blocks(text: str) -> list[Token]:
    return _block_parser.parse(text)


def _is_start(token: Token) -> bool:
    return token.level == 0 and token.nesting >= 0 and token.map is not None


def _is_finished(block: Token, lines: list[str], tail: str) -> bool:
    """Return True if the last block of complete lines can get no more of them.

    Args:
        tail: the line after them, as far as it is written.
    """
    assert block.map is not None
    if block.type in _ENDED_BY_LINE:
        return True
    is_before_blank = not lines[-1].strip(" \t")
    if block.type in _ENDED_BY_BLANK:
        return is_before_blank
    if block.type == "fence":
        closing = re.compile(rf" {{0,3}}{block.markup[0]}{{{len(block.markup)},}}[ \t]*")
        end = lines[block.map[0] + 1 :][block.map[1] - block.map[0] - 2 :][:1]
        return bool(end) and closing.fullmatch(end[0]) is not None
    return is_before_blank and bool(tail) and not _GOES_ON.match(tail)


def _open_definition(lines: list[str]) -> int | None:
    """Return the index of the line where a link's address begins that may still go on, if any."""
    start = max((n + 1 for n, line in enumerate(lines) if not line.strip()), default=0)
    return start if start < len(lines) and _DEFINITION.match(lines[start]) else None


def _complete_last_text(state: StateCore) -> None:
    texts = [token for token in state.tokens if token.type == "inline" and token.content]
    if texts and texts[-1] is not None:
        texts[-1].content = unfinished.complete_inline(texts[-1].content)


_parser = markdown.make_parser()
_parser.core.ruler.before("inline", "complete", _complete_last_text)
_block_parser = markdown.make_parser()
_block_parser.core.ruler.enableOnly(["normalize", "block"])
