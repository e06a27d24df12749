"""TeX formulas in Markdown, as elements of class "math" that a script in the page draws."""

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# Longer ones are text: looking for an end that never comes would take quadratic time.
FORMULA_CHARACTERS = 1000
FORMULA_LINES = 60
INLINE_MATH = ((r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$"))


def use(parser: MarkdownIt) -> None:
    """Add the formulas' rules to a parser."""
    parser.inline.ruler.before("escape", "math", _inline_math)
    parser.block.ruler.before("fence", "math", _block_math, {"alt": ["paragraph", "list"]})
    parser.add_render_rule("math_inline", _render_formula)
    parser.add_render_rule("math_block", _render_formula)


def _inline_math(state: StateInline, silent: bool) -> bool:
    r"""Parse `\(x\)`, `\[x\]` and `$$x$$`, and `$x$` without spaces inside the dollars."""
    source, start = state.src, state.pos
    for opening, closing in INLINE_MATH:
        if source.startswith(opening, start):
            end = source.find(closing, start + 2, start + 2 + FORMULA_CHARACTERS)
            return end > start + 2 and _push_formula(
                state, silent, start + 2, end, end + 2, opening
            )
    if source[start] != "$":
        return False
    end = source.find("$", start + 1, start + 1 + FORMULA_CHARACTERS)
    if end < 0 or not _is_formula(source[start + 1 : end]) or source[end + 1 : end + 2].isdigit():
        return False
    return _push_formula(state, silent, start + 1, end, end + 1, "$")


def _is_formula(text: str) -> bool:
    """True if it is a formula, not the text between "$5 and $6"."""
    return bool(text) and text == text.strip() and "\n" not in text and text[-1] != "\\"


def _push_formula(
    state: StateInline, silent: bool, start: int, end: int, after: int, opening: str
) -> bool:
    """Make a formula of the source from `start` to `end`, and continue `after` it."""
    if not silent:
        kind = "math_inline" if opening in {r"\(", "$"} else "math_block"
        token = state.push(kind, "", 0)
        token.content = state.src[start:end].strip()
    state.pos = after
    return True


def _block_math(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    r"""Parse the lines from `$$` or `\[` to the line that ends with `$$` or `\]`."""
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
        token.map = [first, line + 1]
    state.line = line + 1
    return True


def _render_formula(
    self: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    kind = "math math-block" if token.type == "math_block" else "math"
    return f'<code class="{kind}">{nh3.clean_text(token.content)}</code>'
