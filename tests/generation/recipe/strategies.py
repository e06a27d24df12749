"""Recipes as hypothesis makes them: well-formed ones, and JSON of any shape."""

from typing import Any

from hypothesis import strategies as st

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYS = (
    *("system", "prompt", "schema", "attributes", "columns", "quotas", "params", "checks"),
    *("candidates", "name", "kind", "condition", "keep", "values", "weights", "depends_on"),
    *("min", "max", "decimals", "mean", "deviation", "from", "to", "time", "dataset", "rows"),
    *("text", "format", "fields", "stored", "order", "count", "match", "match_field", "template"),
    *("expression", "criteria", "about", "max_tokens", "thinking", "stop", "type", "properties"),
    *("required", "enum", "items", "field", "at_least", "description"),
)
KINDS = (
    *("category", "persona", "number", "date", "uuid", "seed", "expression", "text"),
    *("structured", "judge"),
)
# JSON with the keys and the words of recipes, so that more of it comes far.
RECIPE_LIKE: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=True)
    | st.sampled_from([*KINDS, "", "a", "b", "{{ a }}", "{{", "a > 1", "2026-01-01", "x" * 60]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)

WORDS = st.text("abcdefghij äöü", min_size=1, max_size=12).filter(lambda text: text.strip())


@st.composite
def values(draw: st.DrawFn) -> dict[str, Any]:
    """The values of a category, with weights in one of their two forms or without."""
    texts = draw(st.lists(WORDS.map(str.strip), min_size=1, max_size=5, unique=True))
    form = draw(st.sampled_from(["plain", "list", "pairs"]))
    if form == "plain":
        return {"values": texts}
    weights = draw(st.lists(st.integers(1, 9), min_size=len(texts), max_size=len(texts)))
    if form == "list":
        return {"values": texts, "weights": weights}
    pairs = [{"value": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)]
    return {"values": pairs}


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    smallest, span = draw(st.integers(-1000, 1000)), draw(st.integers(0, 1000))
    column: dict[str, Any] = {"min": smallest, "max": smallest + span}
    if draw(st.booleans()):
        column |= {"decimals": draw(st.integers(0, 9))}
    if draw(st.booleans()):
        column |= {"mean": smallest, "deviation": draw(st.floats(0.1, 100))}
    return column


@st.composite
def seeds(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.lists(st.fixed_dictionaries({"text": WORDS, "label": WORDS}), min_size=1))
    column: dict[str, Any] = {"rows": rows}
    if draw(st.booleans()):
        column |= {"order": draw(st.sampled_from(["walk", "sample"])), "count": 3}
    if draw(st.booleans()):
        column |= {"template": "- {{ text }}"}
    return column


def texts() -> st.SearchStrategy[dict[str, Any]]:
    checks = st.lists(
        st.one_of(
            st.fixed_dictionaries({"kind": st.just("length"), "min": st.integers(1, 9)}),
            st.fixed_dictionaries({"kind": st.just("lacks"), "text": WORDS}),
        ),
        max_size=2,
    )
    return st.fixed_dictionaries(
        {"prompt": WORDS},
        optional={
            "checks": checks,
            "candidates": st.integers(1, 10),
            "params": st.fixed_dictionaries({}, optional={"temperature": st.floats(0, 5)}),
        },
    )


COLUMNS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "category": values(),
    "persona": st.fixed_dictionaries({"values": st.lists(WORDS, min_size=1), "about": WORDS}),
    "number": numbers(),
    "date": st.just({"from": "2026-01-01", "to": "2026-02-01", "time": True}),
    "uuid": st.just({}),
    "seed": seeds(),
    "expression": st.sampled_from(["1 + 1", "'a' ~ 'b'", "[1, 2]"]).map(
        lambda e: {"expression": e}
    ),
    "text": texts(),
    "structured": st.just(
        {
            "prompt": "Write.",
            "schema": {"type": "object", "properties": {"field_%": {"type": "string"}}},
        }
    ),
    "judge": st.just({"criteria": [{"name": "score_%", "max": 5, "at_least": 2}]}),
}


@st.composite
def columns(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for at, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), max_size=6))):
        column = {"name": f"c{at}", "kind": kind, **draw(COLUMNS[kind])}
        if draw(st.booleans()):
            column["keep"] = draw(st.booleans())
        found.append(_numbered(column, at))
    return found


def _numbered(value: Any, at: int) -> Any:
    """The column with a number in the names that must differ between columns."""
    if isinstance(value, dict):
        return {name.replace("%", str(at)): _numbered(part, at) for name, part in value.items()}
    if isinstance(value, list):
        return [_numbered(part, at) for part in value]
    return value.replace("%", str(at)) if isinstance(value, str) else value


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    """Recipes that `parse` accepts, in the short form, the long one or both."""
    attributes = draw(st.dictionaries(st.sampled_from("abc"), st.lists(WORDS, min_size=1)))
    recipe: dict[str, Any] = {
        "attributes": attributes,
        "columns": draw(columns()),
        "prompt": " ".join(["Write", *(f"{{{{ {name} }}}}" for name in attributes)]),
        "system": draw(WORDS),
    }
    if draw(st.booleans()):
        label = {"type": "string", "enum": ["x", "y"]}
        recipe["schema"] = {"type": "object", "required": ["label"], "properties": {"label": label}}
    if draw(st.booleans()):
        recipe["params"] = {"temperature": None, "max_tokens": 100, "stop": ["###"]}
    for name, options in attributes.items():
        if draw(st.booleans()):
            recipe.setdefault("quotas", {})[name] = {options[0].strip(): draw(st.integers(0, 5))}
    return recipe
