"""Markdown that a model or a person wrote, as HTML that is safe to show.

Raw HTML is never passed through, images of other sites become links (an image address can carry
what was said in the conversation to a stranger), and the sanitiser has the last word.

Code is coloured here, by classes (Pygments); what a formula means is shown by a script in the page,
which finds the TeX in elements of class "math". Diagrams (Mermaid) stay the text they are.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from apps.core.text import formulas, links, tasks

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "figcaption", "figure", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "input",
    "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th",
    "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "figure": {"class", "tabindex"},
    "input": {"aria-label", "checked", "disabled"},
    "li": {"class"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}
# A lexer is a set of regular expressions: on what nobody reads to the end they are not let loose.
COLOURED_CHARACTERS = 30_000
# Messages are shown again and again; the longest are rare and would fill the memory, so of those a
# few are kept: one of 200,000 characters costs a second of CPU, and 1.5 MB here.
KEPT_MESSAGES = 1024
KEPT_CHARACTERS = 20_000
KEPT_LONG_MESSAGES = 8
KEPT_LONG_CHARACTERS = 500_000

# Longer texts come in parts of whole blocks, which a browser lays out when they come near: all of
# 200,000 characters held a page up for half a second. A part is about 40 lines, the height that
# markdown.css takes it for until it is seen.
PARTED_CHARACTERS = 20_000
PART_CHARACTERS = 3_000
TOKEN_CHARACTERS = 20  # of a cell, the start of a list...: they make lines too

NOT_LOADED = "Not loaded, so that its site does not learn who reads this."

_formatter = HtmlFormatter(nowrap=True, classprefix="c-")


def render(text: str) -> str:
    """Safe HTML. Linear in the length of the text."""
    if len(text) <= KEPT_CHARACTERS:
        return _render_kept(text)
    return _render_long(text) if len(text) <= KEPT_LONG_CHARACTERS else _render(text)


@lru_cache(maxsize=KEPT_MESSAGES)
def _render_kept(text: str) -> str:
    return _render(text)


@lru_cache(maxsize=KEPT_LONG_MESSAGES)
def _render_long(text: str) -> str:
    return _render(text)


def _render(text: str) -> str:
    known: EnvType = {}  # the links' addresses, which may stand in another part
    tokens = _parser.parse(text, known)
    if len(text) <= PARTED_CHARACTERS:
        return _clean(tokens, known)
    return "".join(f'<div class="part">{_clean(part, known)}</div>' for part in _parts(tokens))


def blocks_of(text: str, known: EnvType, parser: MarkdownIt | None = None) -> list[str]:
    """Return the HTML of each block of a text.

    Args:
        known: where links' addresses are looked up, and those of this text are added.
        parser: `make_parser()` with more rules.
    """
    tokens = (parser or _parser).parse(text, known)
    return [_clean(block, known).strip() for block in _blocks(tokens)]


def _blocks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    block: list[Token] = []
    for token in tokens:
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    size = 0
    for token in tokens:
        part.append(token)
        size += len(token.content) + TOKEN_CHARACTERS
        is_end_of_block = token.level == 0 and token.nesting <= 0
        if size >= PART_CHARACTERS and is_end_of_block:
            yield part
            part, size = [], 0
    if part:
        yield part


def _clean(tokens: Sequence[Token], known: EnvType) -> str:
    return sanitised(_parser.renderer.render(tokens, _parser.options, known))


def sanitised(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        tag_attribute_values={"input": {"type": {"checkbox"}}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _image_as_link(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    address = nh3.clean_text(str(token.attrGet("src") or ""))
    name = nh3.clean_text(token.content or str(token.attrGet("src") or ""))
    return f'<a href="{address}" title="{NOT_LOADED}">Image: {name}</a>'


def _code(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    language = (token.info.split() or [""])[0]
    is_coloured = len(token.content) <= COLOURED_CHARACTERS
    return code_block(language, coloured(language if is_coloured else "", token.content))


def code_block(language: str, code: str) -> str:
    """A block of code: its language above it, and reachable by keys, because it may scroll.

    Args:
        code: HTML.
    """
    shown = nh3.clean_text(language[:30])
    kind = f' class="language-{shown}"' if shown else ""
    return (
        f'<figure class="code"><figcaption>{shown}</figcaption>'
        f'<pre tabindex="0"><code{kind}>{code}</code></pre></figure>\n'
    )


def coloured(language: str, code: str) -> str:
    """Return code as HTML, with its colours as classes if the language is known."""
    lexer = _lexer(language)
    return str(highlight(code, lexer, _formatter)) if lexer else nh3.clean_text(code)


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def _cell(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """A cell of a table: its column's alignment as a class, since styles are not let through."""
    token = tokens[index]
    side = str(token.attrs.pop("style", "")).removeprefix("text-align:")
    if side:
        token.attrSet("class", f"to-{side}")
    return self.renderToken(tokens, index, options, env)


def _table_open(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """A table scrolls sideways in a box of its own, which keys can reach."""
    return f'<figure class="table" tabindex="0">{self.renderToken(tokens, index, options, env)}'


def _table_close(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return f"{self.renderToken(tokens, index, options, env).rstrip()}</figure>\n"


def make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    links.use(parser)
    formulas.use(parser)
    parser.add_render_rule("image", _image_as_link)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tasks.use(parser)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    parser.add_render_rule("td_open", _cell)
    parser.add_render_rule("th_open", _cell)
    return parser


_parser = make_parser()
