"""Splits a document into passages (pure)."""

import re
from collections.abc import Iterator

PASSAGE = 1_200  # characters: about 300 tokens, some paragraphs
FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
TABLE_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
SENTENCE_END = re.compile(r"[.!?]\s|[。！？]")


def passages(text: str, longest: int = PASSAGE) -> list[str]:
    """A document in pieces of at most `longest` characters, its lines as they are.

    Cut at blank lines, else at line ends, sentences or spaces. A block of code stays fenced and a
    table keeps its head where they have to be cut.
    """
    merged: list[str] = []
    for block in _blocks(text):
        for piece in _cut(block, longest):
            if merged and len(merged[-1]) + len(piece) + 2 <= longest:
                merged[-1] = f"{merged[-1]}\n\n{piece}"
            else:
                merged.append(piece)
    return merged


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines without a blank one between them; a fenced block of code is one, blank lines or not."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        line = line.rstrip()
        opened = FENCE.match(line)
        if fence:
            block.append(line)
            if opened and line.strip() == opened[1] and opened[1].startswith(fence):
                yield block
                block, fence = [], ""
            continue
        if block and (opened or not line):
            yield block
            block = []
        if opened:
            fence = opened[1]
        if line:
            block.append(line)
    if block:
        yield block


def _cut(block: list[str], longest: int) -> list[str]:
    """A block in pieces that fit."""
    whole = "\n".join(block)
    if len(whole) <= longest:
        return [whole]
    head, lines, tail = _frame(block)
    room = longest - sum(len(line) + 1 for line in [*head, *tail])
    if room < longest // 2:  # a frame as large as that is none
        head, lines, tail, room = [], block, [], longest
    pieces: list[list[str]] = [[]]
    filled = 0
    for line in lines:
        for part in _parts(line, room):
            if filled + len(part) + 1 > room + 1 and pieces[-1]:
                pieces.append([])
                filled = 0
            pieces[-1].append(part)
            filled += len(part) + 1
    return ["\n".join([*head, *piece, *tail]) for piece in pieces if piece]


def _frame(block: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Splits a block into the start and end of each piece (a fence, the head of a table) and the
    lines between."""
    if opened := FENCE.match(block[0]):
        is_closed = len(block) > 1 and block[-1].strip().startswith(opened[1])
        return [block[0]], block[1 : -1 if is_closed else None], [opened[1]]
    if len(block) > 2 and TABLE_RULE.fullmatch(block[1].strip()) and "|" in block[0]:
        return block[:2], block[2:], []
    return [], block, []


def _parts(line: str, longest: int) -> Iterator[str]:
    """A line that is too long, cut at sentences, else at spaces, else anywhere."""
    start = 0
    while len(line) - start > longest:
        window = line[start : start + longest]
        ends = [found.end() for found in SENTENCE_END.finditer(window)]
        at = ends[-1] if ends else (window.rfind(" ") + 1 or longest)
        yield window[:at].rstrip()
        start += at
        while line[start : start + 1] == " ":
            start += 1
    if start < len(line):
        yield line[start:]
