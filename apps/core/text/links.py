"""Addresses in plain text as links, in time that grows with the text alone.

`linkify-it` looks for them with expressions that are quadratic in what has no blank in it, and the
rule that comes with `markdown-it` copies all tokens of a paragraph for each link. Here each word is
looked at by itself, and each token once.
"""

import re
from collections.abc import Iterator

from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# A longer word is an address as a whole or none at all.
WORD_CHARACTERS = 400
ADDRESS_CHARACTERS = 2000

_WORD = re.compile(r"\S+")
_REST_OF_WORD = re.compile(rf"[^\s<]{{0,{ADDRESS_CHARACTERS}}}")
_SCHEME = re.compile(r"(?:^|[^a-z])(https?)$", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_AFTER_ADDRESS = ".,;:!?)]}*_~"

_linkify = LinkifyIt()


def use(parser: MarkdownIt) -> None:
    """Has a parser make links of addresses. Its own rules for that stay off."""
    parser.inline.ruler.before("escape", "address", _whole_address)
    parser.core.ruler.at("linkify", _links)
    parser.enable("linkify")


def _whole_address(state: StateInline, silent: bool) -> bool:
    """An address with its scheme: what is in it is no markup."""
    if not state.src.startswith("://", state.pos) or state.linkLevel > 0:
        return False
    scheme = _SCHEME.search(state.pending[-8:])
    rest = _REST_OF_WORD.match(state.src, state.pos)
    if scheme is None or rest is None:
        return False
    address = _address_of(scheme[1] + rest[0])
    href = state.md.normalizeLink(address)
    if not address or not state.md.validateLink(href):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        opening = state.push("link_open", "a", 1)
        opening.attrs = {"href": href}
        state.push("text", "", 0).content = state.md.normalizeLinkText(address)
        closing = state.push("link_close", "a", -1)
        for edge in (opening, closing):
            edge.markup, edge.info = "linkify", "auto"
    state.pos += len(address) - len(scheme[1])
    return True


def _address_of(word: str) -> str:
    """The address that a word begins with; "" where it begins with none."""
    if len(word) <= WORD_CHARACTERS:
        found = _linkify.match_at_start(f"{word} ")
        return str(found.text).rstrip("*") if found else ""
    whole = _ADDRESS.match(word) if len(word) <= ADDRESS_CHARACTERS else None
    return whole[0].rstrip(_AFTER_ADDRESS) if whole else ""


def _links(state: StateCore) -> None:
    """Matches addresses without a scheme: example.org, someone@example.org."""
    for block in state.tokens:
        if block.type == "inline" and block.children and _may_have_link(block.content):
            block.children = _with_links(state, block.children)


def _may_have_link(text: str) -> bool:
    return "." in text or "@" in text


def _with_links(state: StateCore, tokens: list[Token]) -> list[Token]:
    found: list[Token] = []
    links = 0
    for token in tokens:
        links += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "text" and not links:
            # "http\://example.org" is to stay text: the escape ends its first half.
            is_after_escape = bool(found) and found[-1].type == "text_special"
            found.extend(_pieces(state, token, is_after_escape))
        else:
            found.append(token)
    return found


def _pieces(state: StateCore, token: Token, is_after_escape: bool) -> Iterator[Token]:
    text, place = token.content, 0
    for start, end, address, shown in _addresses(text):
        href = state.md.normalizeLink(address)
        if not state.md.validateLink(href) or (start == 0 and is_after_escape):
            continue
        if start > place:
            yield _text(text[place:start], token.level)
        opening = Token("link_open", "a", 1, attrs={"href": href}, level=token.level)
        closing = Token("link_close", "a", -1, level=token.level)
        for edge in (opening, closing):
            edge.markup, edge.info = "linkify", "auto"
        yield opening
        yield _text(state.md.normalizeLinkText(shown), token.level + 1)
        yield closing
        place = end
    if place == 0:
        yield token
    elif place < len(text):
        yield _text(text[place:], token.level)


def _text(content: str, level: int) -> Token:
    return Token("text", "", 0, content=content, level=level)


def _addresses(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Return the addresses in a text: positions, targets and labels."""
    for word in _WORD.finditer(text):
        said = word[0]
        if len(said) > WORD_CHARACTERS or ("@" not in said and "." not in said[1:-1]):
            continue
        # The blank as in a text: some marks are a part of an address only at its very end.
        for link in _linkify.match(f"{said} ") or ():
            start, end = word.start() + link.index, word.start() + link.last_index
            yield start, end, link.url, link.text
