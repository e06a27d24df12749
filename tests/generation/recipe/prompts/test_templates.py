"""Prompt templates: what they may do, and that they can do nothing else."""

import tracemalloc

import pytest

from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import MAX_PROMPT
from apps.generation.recipe.prompts.names import check_name
from apps.generation.recipe.prompts.templates import check, check_expression, evaluate, render
from tests.cpu_time import bounded_cpu

COLUMNS = ["product", "sentiment"]
VALUES = {"product": "kettle", "sentiment": "positive"}


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        (
            "Write a {{ sentiment }} review of a {{ product }}.",
            "Write a positive review of a kettle.",
        ),
        ("{{product}}", "kettle"),
        ("{{ product|upper }} {{ sentiment | title }}", "KETTLE Positive"),
        ("{{ 'A ' ~ product }}", "A kettle"),
        # As Jinja does, with which older recipes were made.
        ("{{ \"don't 2nd\"|title }} {{ 'a-b (cD'|title }}", "Don't 2nd A-B (Cd"),
        ("{{ '..a b. '|trim('. ') }}|{{ ' a '|trim }}|{{ 'xax'|trim('x') }}", "a b|a|a"),
        ("{{ product|trim('ke') }}", "ttl"),
        ("{% if sentiment == 'positive' %}good{% else %}bad{% endif %}", "good"),
        ("{% if product in ['lamp', 'kettle'] and not sentiment == 'x' %}yes{% endif %}", "yes"),
        ("{{ 'yes' if product is eq 'kettle' else 'no' }}", "yes"),
        ("{% raw %}{{ product }}{% endraw %}", "{{ product }}"),
        ("{# a note #}Plain", "Plain"),
        ("  around  ", "around"),
    ],
)
def test_renders(source: str, prompt: str) -> None:
    check(source, COLUMNS)
    assert render(source, VALUES) == prompt


def test_a_value_is_text_not_template() -> None:
    values = {"product": "{{ sentiment }} {% for x in y %}", "sentiment": "positive"}
    assert render("{{ product }}", values) == "{{ sentiment }} {% for x in y %}"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("One\ntwo {{ produkt }}", "Line 2: no column “produkt”. Did you mean “product”?"),
        ("{% if colour %}x{% endif %}", "Line 1: no column “colour”."),
        ("{{ product", "Line 1: unexpected end of template"),
        ("{{ product }", "Line 1: "),
        ("{% if product %}", "Line 1: "),
        ("{{ product|list }}", "filter"),
        ("{{ product|nosuch }}", "filter"),
        ("{{ range }}", "no column “range”"),
        ("{% endfor %}", "Line 1: "),
    ],
)
def test_says_the_line_and_what_is_wrong(source: str, sentence: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check(source, COLUMNS)
    assert sentence in str(caught.value)


ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ product.__init__.__globals__ }}",
    "{{ product|attr('__class__') }}",
    "{{ self }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ config }}",
    "{{ request }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ joiner }}",
    "{{ namespace(a=1) }}",
    "{{ dict() }}",
    "{{ product.upper() }}",
    "{{ '%s'|format(product) }}",
    "{{ '{0.__class__}'.format(product) }}",
    "{{ product[0] }}",
    "{{ product[::-1] }}",
    "{{ [product]|map('upper')|list }}",
    "{{ [].append(1) }}",
    "{% set x = 1 %}",
    "{% set product = 'lamp' %}{{ product }}",
    "{% set x %}a{% endset %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% call product() %}{% endcall %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% extends 'base.html' %}",
    "{% block x %}{% endblock %}",
    "{% filter upper %}x{% endfilter %}",
    "{% with x = 1 %}{{ x }}{% endwith %}",
    "{% autoescape true %}{% endautoescape %}",
    "{% do product %}",
    "{% debug %}",
    "{{ {'a': product} }}",
]
ENDLESS = [
    "{% for i in range(1000000000) %}{% endfor %}",
    "{% for a in [1] %}{% for b in [1] %}{% for c in [1] %}x{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in product recursive %}{{ loop(a) }}{% endfor %}",
    "{% for a, b in product %}x{% endfor %}",
    "{{ 'a' * 10000000000 }}",
    "{{ 10 ** 10 ** 10 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ product.ljust(1000000000) }}",
    "{{ product|center(1000000000) }}",
    "{{ product|indent(1000000000) }}",
    "{{ product|replace('', 'aaaaaaaaaaaaaaaa') }}",
    "{{ [product]|batch(1000000000, 'x')|list }}",
    "{{ product|wordwrap(1) }}",
    "{{ " + "(" * 20_000 + "product" + ")" * 20_000 + " }}",
    "{{ " + "not " * 9_000 + "product }}",
    "{% if product %}" * 900 + "x" + "{% endif %}" * 900,
    "x" * 60_000,
]


@pytest.mark.parametrize("source", ESCAPES + ENDLESS, ids=lambda source: source[:40])
def test_neither_reaches_out_nor_runs_on(source: str) -> None:
    with bounded_cpu():
        with pytest.raises(RecipeError):
            check(source, COLUMNS)
        with pytest.raises(RecipeError):
            render(source, VALUES)


def test_a_prompt_that_comes_out_huge_is_cut_short() -> None:
    source = "{{ product }}" * 2_000
    with pytest.raises(RecipeError, match="200,000"):
        render(source, {"product": "x" * (MAX_PROMPT // 1_000)})


def test_an_empty_prompt_is_no_prompt() -> None:
    with pytest.raises(RecipeError, match="empty"):
        render("{% if product == 'lamp' %}x{% endif %}", VALUES)


@pytest.mark.parametrize(
    "name", ["", "a b", "1a", "a-b", "é", "true", "None", "if", "x" * 51, "a.b"]
)
def test_check_name_refuses_bad_names(name: str) -> None:
    with pytest.raises(RecipeError):
        check_name(name)


def test_check_name_takes_good_names() -> None:
    for name in ("product", "_x", "Intent2"):
        check_name(name)


NUMBERS = {"n": 7, "price": 2.5, "name": "kettle", "none": None, "flags": ["a", "b"]}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("n + 1", 8),
        ("n // 2 * 2", 6),
        ("n % 2 == 1 and price < 3", True),
        ("-n", -7),
        ("'odd' if n % 2 else 'even'", "odd"),
        ("name ~ ' ' ~ n", "kettle 7"),
        ("name|upper", "KETTLE"),
        ("none or 'nothing'", "nothing"),
        ("n in [1, 7]", True),
        ("[n, name]", [7, "kettle"]),
        ("'a' in flags", True),
    ],
)
def test_expressions(source: str, value: object) -> None:
    check_expression(source, list(NUMBERS))
    assert evaluate(source, NUMBERS) == value


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("n +", "Line 1"),
        ("n }} {{ n", "Line 1"),
        ("n; import os", "Line 1"),
        ("", "empty"),
        ("1 +\nm", "Line 2: no column “m”"),
        ("n ** n", "do not support arithmetic"),
        ("n.__class__", "do not support attributes"),
        ("n()", "do not support calls"),
        ("name[0]", "do not support brackets"),
        ("(" * 5000 + "n" + ")" * 5000, "At most 2,000"),
    ],
)
def test_expressions_that_are_refused(source: str, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence.replace("(", r"\(")):
        check_expression(source, list(NUMBERS))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("name * 10000000000", "works on numbers, not on “kettle”"),
        ("'%1000000000d' % n", "works on numbers"),
        ("[1] * 1000000000", "works on numbers"),
        ("name + name", "works on numbers"),
        ("n + none", "not on nothing"),
        ("n / (n - 7)", "Division by zero"),
        ("1000000000000000 * 1000000000000000 * 10", "too large"),
        ("name < n", "could not be evaluated"),
    ],
)
def test_expressions_that_cannot_be_worked_out(source: str, sentence: str) -> None:
    with bounded_cpu(), pytest.raises(RecipeError, match=sentence):
        evaluate(source, NUMBERS)


@pytest.mark.parametrize(
    "source",
    [
        escape.removeprefix("{{").removesuffix("}}").strip()
        for escape in ESCAPES + ENDLESS
        if escape.startswith("{{")
    ],
    ids=lambda source: source[:40],
)
def test_an_expression_neither_reaches_out_nor_runs_on(source: str) -> None:
    def use() -> None:
        check_expression(source, COLUMNS)
        evaluate(source, VALUES)

    with bounded_cpu(), pytest.raises(RecipeError):
        use()


def test_what_is_no_text_is_written_as_json() -> None:
    assert render("{{ n }} {{ price }} {{ none }}| {{ flags }}", NUMBERS) == '7 2.5 | ["a", "b"]'


STRUCTURED = {
    "tags": ["new", "for two"],
    "address": {"city": "Bern", "lines": ["A 1", "B 2"], "items": 3},
    "people": [{"name": "Ana", "age": 30}, {"name": "Ben"}],
    "empty": None,
    "zero": 0,
}


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("{% for tag in tags %}- {{ tag }}\n{% endfor %}", "- new\n- for two"),
        ("{% for tag in tags %}{{ loop.index }} {{ tag }}{% if not loop.last %}, {% endif %}"
         "{% endfor %}", "1 new, 2 for two"),
        ("{% for tag in empty %}x{% else %}no tags{% endfor %}", "no tags"),
        ("{% for p in people if p.age %}{{ p.name }}: {{ p.age }}{% endfor %}", "Ana: 30"),
        ("{% for p in people %}{% for t in tags %}{{ p.name }}/{{ t }} {% endfor %}{% endfor %}",
         "Ana/new Ana/for two Ben/new Ben/for two"),
        ("{{ address.city }}", "Bern"),
        ("{{ address.lines|join('; ') }}", "A 1; B 2"),
        ("{{ address.items }}", "3"),  # the field, not the method of a dict
        ("{{ tags|join }}", "newfor two"),
        ("{{ empty|default('nothing') }} {{ zero|default(5) }}", "nothing 0"),
        ("{{ address.street|default('no street') }}", "no street"),
        ("{{ address|tojson }}", '{"city": "Bern", "lines": ["A 1", "B 2"], "items": 3}'),
        ("{{ tags|length }} {{ empty|length }}", "2 0"),
        ("{% if tags|length > 1 %}many{% endif %}", "many"),
    ],
)  # fmt: skip
def test_lists_and_objects_in_words(source: str, prompt: str) -> None:
    check(source, list(STRUCTURED))
    assert render(source, STRUCTURED) == prompt


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{% for a in address %}x{% endfor %}", "“for” needs a list"),
        ("{{ tags.first }}", "has no field “first”"),
        ("{{ zero.real }}", "has no field “real”"),
        ("{{ zero|join }}", "“join” needs a list"),
        ("{{ zero|length }}", "has no length"),
        ("{{ '" + "ab" * 501 + "'|trim('" + "ab" * 501 + "') }}", "removes up to 1,000"),
    ],
)
def test_template_says_what_a_value_is_not(source: str, sentence: str) -> None:
    check(source, list(STRUCTURED))
    with pytest.raises(RecipeError, match=sentence):
        render(source, STRUCTURED)


def test_names_of_a_loop_end_with_it() -> None:
    for source in ("{% for t in tags %}x{% endfor %}{{ t }}", "{{ loop.index }}"):
        with pytest.raises(RecipeError, match="no column"):
            check(source, list(STRUCTURED))


LONG = {"a": "x" * 20_000, "many": ["y" * 20_000] * 1_000, "parts": list(range(100_000))}


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "~".join(["a"] * 20_000) + " }}",
        "{{ " + "~".join(["a"] * 5_000) + " }}",
        "{{ " + "~".join(["(a~a~a~a~a~a~a~a~a~a)"] * 500) + " }}",
        "{{ " + "~".join(["a|upper"] * 2_900) + " }}",
        "{{ many|join(a) }}",
        "{% for x in parts %}{% for y in parts %}{% endfor %}{% endfor %}",
        "{% for x in many %}{% for y in many %}{% if x|upper == y %}{% endif %}{% endfor %}"
        "{% endfor %}",
        "{% for x in parts %}" + "{% if a == x %}{% endif %}" * 1_500 + "{% endfor %}",
    ],
    ids=lambda source: source[:30],
)
def test_no_template_runs_on_over_long_texts(source: str) -> None:
    with bounded_cpu(), pytest.raises(RecipeError):
        render(source, LONG)


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "~".join(["a"] * 1_500) + " }}",
        "{{ " + "~".join(["(a~a~a~a~a~a~a~a~a~a)"] * 150) + " }}",
        "{{ " + "~".join(["a|upper"] * 750) + " }}",
        "{{ many|join(a) }}",
    ],
    ids=lambda source: source[:30],
)
def test_no_text_is_made_that_is_refused_afterwards(source: str) -> None:
    """Each of them would come to 15 MB or more."""
    with pytest.raises(RecipeError):
        render(source, {})  # compiled now
    tracemalloc.start()
    try:
        with pytest.raises(RecipeError):
            render(source, LONG)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8_000_000


def test_a_number_of_thousands_of_digits_is_a_mistake_of_the_recipe() -> None:
    for use in (check, check_expression):
        source = "1" * 4_400 if use is check_expression else "{{ " + "1" * 4_400 + " }}"
        with pytest.raises(RecipeError):
            use(source, [])
    with pytest.raises(RecipeError, match="too many digits"):
        check("{{ " + "1" * 4_400 + " }}", [])
