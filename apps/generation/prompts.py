"""Prompt templates: a small, finite part of Jinja2 (pure).

Only the columns are known, and only what grows with the length of template and values is allowed:
no loops, no calls, no attributes, no arithmetic. A template can then neither reach the machine nor
keep it busy, whatever stands in it; Jinja's own immutable sandbox is the second wall behind that.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apps.generation.problems import RecipeError

MAX_TEMPLATE = 50_000  # characters
MAX_PROMPT = 200_000  # characters a template may come out as
MAX_DEPTH = 100
FILTERS = ("lower", "upper", "capitalize", "title", "trim")
TESTS = ("eq", "ne", "equalto", "in")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
# Jinja reads these as its own.
RESERVED = frozenset(
    {"true", "false", "none", "and", "or", "not", "in", "is", "if", "else", "elif", "self", "loop"}
)

ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.If),
    *(nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat),
    *(nodes.Filter, nodes.Test, nodes.List, nodes.Tuple),
)
REFUSED: dict[type[nodes.Node], str] = {
    nodes.For: "loops",
    nodes.Call: "calls",
    nodes.Getattr: "attributes",
    nodes.Getitem: "brackets",
    nodes.BinExpr: "arithmetic",
    nodes.UnaryExpr: "arithmetic",
    nodes.Assign: "assignments",
    nodes.AssignBlock: "assignments",
    nodes.Macro: "macros",
    nodes.Include: "includes",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "inheritance",
    nodes.Block: "blocks",
}


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False
    )
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.tests = {name: environment.tests[name] for name in TESTS}
    return environment


_jinja = _environment()


def check(source: str, columns: Sequence[str] | None) -> None:
    """That the template can be rendered for every row.

    Args:
        columns: the names it may use; None where they are not known for another mistake.

    Raises:
        RecipeError: naming the line, and the column that is not there.
    """
    tree = _parsed(source)
    if columns is None:
        return
    for name in tree.find_all(nodes.Name):
        if name.name not in columns:
            raise RecipeError.of(f"Line {name.lineno}: {_unknown(name.name, columns)}")


def render(source: str, values: Mapping[str, str]) -> str:
    """The prompt of one row, without white space around it.

    Raises:
        RecipeError: the template is not allowed, a column is missing, or it comes out too long.
    """
    parts: list[str] = []
    length = 0
    try:
        for part in _compiled(source).generate(values):
            parts.append(part)
            length += len(part)
            if length > MAX_PROMPT:
                raise RecipeError.of(f"The prompt comes out longer than {MAX_PROMPT:,} characters.")
    except (TemplateError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, RecipeError):
            raise
        raise RecipeError.of(f"The prompt cannot be put together: {error}") from error
    prompt = "".join(parts).strip()
    if not prompt:
        raise RecipeError.of("The prompt comes out empty for this row.")
    return prompt


def check_name(name: str) -> None:
    """That a column's name can stand between {{ and }}.

    Raises:
        RecipeError: saying what a name looks like.
    """
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        raise RecipeError.of(
            f"“{name[:60]}” cannot be a column's name: use letters, digits and _, "
            "begin with a letter, and no word that templates keep for themselves."
        )


@lru_cache(maxsize=256)
def _compiled(source: str) -> Template:
    _parsed(source)
    return _jinja.from_string(source)


def _parsed(source: str) -> nodes.Template:
    if len(source) > MAX_TEMPLATE:
        raise RecipeError.of(f"At most {MAX_TEMPLATE:,} characters; these are {len(source):,}.")
    try:
        tree = _jinja.parse(source)
    except TemplateSyntaxError as error:
        raise RecipeError.of(f"Line {error.lineno}: {_sentence(error.message or '')}") from error
    except RecursionError as error:
        raise RecipeError.of("The template is nested too deeply.") from error
    _walk(tree)
    return tree


def _walk(tree: nodes.Template) -> None:
    level: list[nodes.Node] = [tree]
    for _ in range(MAX_DEPTH):
        for node in level:
            _check_node(node)
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise RecipeError.of("The template is nested too deeply.")


def _check_node(node: nodes.Node) -> None:
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        known = ", ".join(FILTERS)
        raise RecipeError.of(f"Line {node.lineno}: there is no filter “{node.name}”. Use {known}.")
    if isinstance(node, nodes.Test) and node.name not in TESTS:
        raise RecipeError.of(f"Line {node.lineno}: there is no test “{node.name}”.")
    if isinstance(node, nodes.Name) and node.name == "self":  # the one name Jinja adds by itself
        raise RecipeError.of(f"Line {node.lineno}: there is no column “self”.")
    if isinstance(node, ALLOWED):
        return
    what = REFUSED.get(type(node), "this part of Jinja")
    raise RecipeError.of(
        f"Line {node.lineno}: {what} cannot be used in a prompt. "
        "Put columns between {{ and }}, and conditions between {% if %} and {% endif %}."
    )


def _unknown(name: str, columns: Sequence[str]) -> str:
    if not columns:
        return f"there is no column “{name}”. Add it to the attributes, with its values."
    close = get_close_matches(name, columns, n=1)
    hint = f" Did you mean “{close[0]}”?" if close else ""
    return f"there is no column “{name}”.{hint} The columns are: {', '.join(columns)}."


def _sentence(message: str) -> str:
    message = message.strip().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}."
