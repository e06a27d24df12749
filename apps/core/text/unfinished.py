"""Completes Markdown that is still being written, so that no half of a mark is shown. Pure.

What may become a mark with the next characters is held back, what is open is closed: `**bol` is
shown as bold, `[text](https://exa` as its text, a table as soon as its head is there. A formula is
shown when it is closed; until then a block of it keeps one line free.
"""

import re

FREE_LINE = "&nbsp;"
# A dollar sign may be money: after this many characters without a second one it is text.
DOLLAR_CHARACTERS = 80

_PREFIX = r"[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]+|>)*"
# A line that is nothing but the beginning of a mark, or of a fence, whose language is not complete.
_ONLY_MARK = re.compile(
    rf"{_PREFIX}(?:#{{1,6}}|\d{{1,9}}[.)]?|>|`{{1,2}}|~{{1,2}}|[`~]{{3}}[^`\n]*"
    r"|[-*_=|:+ \t]+|\$\$?|\\|[-*+][ \t]+\[[ xX]?\]?|\[[ xX]?\]?)?[ \t]*"
)
_FORMULA_START = re.compile(rf"{_PREFIX}(\$\$|\\\[)")
_FORMULA_END = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_DELIMITER_ROW = re.compile(r"[ \t|:-]*")
_OPEN_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*$")
_RUN = re.compile(r"\*+|_+|~~+")
_BACKTICKS = re.compile("`+")
LONGEST_MARK = 4  # of so many or more stars: no marks


def complete_blocks(text: str) -> str:
    """Return a text whose last line is no half of a mark, and whose last block is closed."""
    head, newline, tail = text.rpartition("\n")
    head += newline
    if _ONLY_MARK.fullmatch(tail):
        tail = ""
    return _with_table_head(_without_open_formula(head + tail), text)


def open_formula(lines: list[str]) -> int | None:
    """Return the index of the line where a formula begins that may still be closed, if any."""
    start, closing = None, ""
    for index, line in enumerate(lines):
        if not line.strip(" \t"):
            start = None
        elif start is None and (found := _FORMULA_START.match(line)):
            closing = _FORMULA_END[found[1]]
            start = None if line[found.end() :].rstrip().endswith(closing) else index
        elif start is not None and line.rstrip().endswith(closing):
            start = None
    return start


def _without_open_formula(text: str) -> str:
    lines = text.split("\n")
    run = lines[:-1] if not lines[-1] and len(lines) > 1 else lines
    start = open_formula(run)
    if start is None:
        return text
    mark = _FORMULA_START.match(lines[start])
    assert mark is not None
    return "\n".join([*lines[:start], lines[start][: mark.start(1)] + FREE_LINE])


def _with_table_head(shown: str, written: str) -> str:
    """Show the head of a table before its second line is complete; until then hold it back."""
    *lines, tail = written.split("\n")
    run = []
    while lines and lines[-1].strip():
        run.append(lines.pop())
    before = "".join(f"{line}\n" for line in lines)
    if not run and tail.startswith("|"):
        return before
    if len(run) == 1 and run[0].startswith("|") and _DELIMITER_ROW.fullmatch(tail):
        return f"{before}{_head(run[0])}"
    return shown


def _head(line: str) -> str:
    columns = max(1, line.strip().strip("|").count("|") + 1)
    return f"{line}\n|{'---|' * columns}"


def complete_inline(text: str) -> str:
    """Return the text of a paragraph, a cell, ... with everything closed that is open in it."""
    opened: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        after: int | None = at + 1
        if letter == "\\":
            after = _after_backslash(text, at)
        elif letter == "$":
            after = _after_dollar(text, at)
        elif letter == "`":
            run = _BACKTICKS.match(text, at)
            assert run is not None
            after = _after_code(text, run)
            if after is None and text[run.end() :].strip("` "):
                return _closed(text.rstrip("` ") + run[0], opened)
        elif run := _RUN.match(text, at):
            is_used = _mark(text, run, opened)
            after = run.end() if is_used or run.end() < len(text) else None
        if after is None:  # what stands here is open, and nothing of it can be shown
            return _closed(text[:at], opened)
        at = after
    return _closed(_OPEN_LINK.sub(r"\1", text), opened)


def _after_backslash(text: str, at: int) -> int | None:
    closing = _FORMULA_END.get(text[at : at + 2])
    if closing is None:
        return at + 2 if at + 1 < len(text) else None
    end = text.find(closing, at + 2)
    return end + 2 if end >= 0 else None


def _after_dollar(text: str, at: int) -> int | None:
    """Return where the text goes on after a formula or a plain dollar; None if it may be open."""
    if text.startswith("$$", at):
        end = text.find("$$", at + 2)
        return end + 2 if end >= 0 else None
    end = text.find("$", at + 1)
    if end >= 0:
        is_formula = "\n" not in text[at:end] and text[at + 1].strip() and text[end - 1].strip()
        return end + 1 if is_formula else at + 1
    rest = text[at + 1 :]
    is_text = rest[:1].isspace() or rest[:1].isdigit() or "\n" in rest
    return at + 1 if is_text or len(rest) > DOLLAR_CHARACTERS else None


def _after_code(text: str, opening: re.Match[str]) -> int | None:
    ends = (run.end() for run in _BACKTICKS.finditer(text, opening.end()) if run[0] == opening[0])
    return next(ends, None)


def _mark(text: str, run: re.Match[str], opened: list[str]) -> bool:
    """Record that a run of marks opens or closes; return False if it does neither."""
    mark, before, after = run[0], text[: run.start()][-1:], text[run.end() :][:1]
    opens, closes = bool(after.strip()), bool(before.strip())
    if mark[0] == "_":
        opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
    if closes and mark in opened:
        while opened.pop() != mark:
            pass
    elif opens and len(mark) < LONGEST_MARK:
        opened.append(mark)
    else:
        return False
    return True


def _closed(text: str, opened: list[str]) -> str:
    """Close what is open, before the blanks at the end; an opening without a text goes."""
    text = text.rstrip()
    while opened and text.endswith(opened[-1]):
        text = text.removesuffix(opened.pop()).rstrip()
    return text + "".join(reversed(opened))
