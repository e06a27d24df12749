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
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from apps.core.text import links

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "figcaption", "figure", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th",
    "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "figure": {"class"},
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
    return nh3.clean(
        _parser.renderer.render(tokens, _parser.options, known),
        tags=TAGS,
        attributes=ATTRIBUTES,
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
    return f'<a href="{address}">{name}</a>'


def _code(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """A block of code: its language above it, and reachable by keys, because it may scroll."""
    token = tokens[index]
    language = (token.info.split() or [""])[0]
    shown = nh3.clean_text(language[:30])
    lexer = _lexer(language) if len(token.content) <= COLOURED_CHARACTERS else None
    code = highlight(token.content, lexer, _formatter) if lexer else nh3.clean_text(token.content)
    kind = f' class="language-{shown}"' if shown else ""
    return (
        f'<figure class="code"><figcaption>{shown}</figcaption>'
        f'<pre tabindex="0"><code{kind}>{code}</code></pre></figure>\n'
    )


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


def _math(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    kind = "math math-block" if token.type == "math_block" else "math"
    return f'<code class="{kind}">{nh3.clean_text(token.content)}</code>'


def _cell(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """A cell of a table: its column's alignment as a class, since styles are not let through."""
    token = tokens[index]
    side = str(token.attrs.pop("style", "")).removeprefix("text-align:")
    if side:
        token.attrSet("class", f"to-{side}")
    return self.renderToken(tokens, index, options, env)


# Longer ones are text: looking for an end that never comes would take quadratic time.
FORMULA_CHARACTERS = 1000
FORMULA_LINES = 60
INLINE_MATH = ((r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$"))


def _inline_math(state: StateInline, silent: bool) -> bool:
    r"""`\(x\)`, `\[x\]` and `$$x$$`, and `$x$` where the dollars touch what is between them."""
    source, start = state.src, state.pos
    for opening, closing in INLINE_MATH:
        if source.startswith(opening, start):
            end = source.find(closing, start + 2, start + 2 + FORMULA_CHARACTERS)
            return end > start + 2 and _take(state, silent, start + 2, end, end + 2, opening)
    if source[start] != "$":
        return False
    end = source.find("$", start + 1, start + 1 + FORMULA_CHARACTERS)
    if end < 0 or not _is_formula(source[start + 1 : end]) or source[end + 1 : end + 2].isdigit():
        return False
    return _take(state, silent, start + 1, end, end + 1, "$")


def _is_formula(text: str) -> bool:
    """True if it is a formula, not the text between "$5 and $6"."""
    return bool(text) and text == text.strip() and "\n" not in text and text[-1] != "\\"


def _take(state: StateInline, silent: bool, start: int, end: int, after: int, opening: str) -> bool:
    """Makes a formula of what lies from `start` to `end`, and goes on `after` it."""
    if not silent:
        kind = "math_inline" if opening in {r"\(", "$"} else "math_block"
        token = state.push(kind, "", 0)
        token.content = state.src[start:end].strip()
    state.pos = after
    return True


def _block_math(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    r"""Lines from `$$` or `\[` to the line that ends with `$$` or `\]`."""
    start = state.bMarks[first] + state.tShift[first]
    opening = state.src[start : start + 2]
    closing = {"$$": "$$", r"\[": r"\]"}.get(opening)
    if closing is None or state.is_code_block(first):
        return False
    for line in range(first, min(last, first + FORMULA_LINES)):
        begin = state.bMarks[line] + state.tShift[line] + (2 if line == first else 0)
        text = state.src[begin : state.eMarks[line]].rstrip()
        if text.endswith(closing):
            break
        if not text and line > first:  # a paragraph has ended: it was no formula
            return False
    else:
        return False
    if not silent:
        token = state.push("math_block", "", 0)
        source = state.src[start + 2 : state.eMarks[line]].rstrip()
        token.content = source.removesuffix(closing).strip()
        token.block = True
    state.line = line + 1
    return True


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    links.use(parser)
    parser.inline.ruler.before("escape", "math", _inline_math)
    parser.block.ruler.before("fence", "math", _block_math, {"alt": ["paragraph", "list"]})
    parser.add_render_rule("image", _image_as_link)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    parser.add_render_rule("td_open", _cell)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("math_inline", _math)
    parser.add_render_rule("math_block", _math)
    return parser


_parser = _make_parser()
