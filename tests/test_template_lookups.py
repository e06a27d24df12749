"""What counts as a look-up that finds nothing (tests/template_lookups.py)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template import Origin, Template, engines
from django.template.context import Context

from tests.template_lookups import MissingLookups


@dataclass
class Kettle:
    name: str = "Blue"
    lid: "Kettle | None" = None


def missing(found: MissingLookups, source: str, **context: Any) -> set[str]:
    """The look-ups that fail a test which renders this text as a template of ours."""
    origin = Origin(str(Path(settings.BASE_DIR) / "templates" / "page.html"))
    engine = engines["django"].engine  # type: ignore[attr-defined]
    Template(source, origin=origin, name="page.html", engine=engine).render(Context(context))
    variables = {entry.removeprefix("page.html: ") for entry in found.found}
    found.found.clear()
    return variables


@pytest.mark.parametrize(
    "source",
    [
        "{{ kettle.colour }}",
        "{% if kettle.colour %}blue{% endif %}",
        '{{ kettle.colour|default:"none" }}',
        "{% for part in kettle.colour %}{% endfor %}",
        "{% with shade=kettle.colour %}{% endwith %}",
    ],
)
def test_attribute_that_an_object_lacks_is_reported_everywhere(
    source: str, missing_lookups: MissingLookups
) -> None:
    assert missing(missing_lookups, source, kettle=Kettle()) == {"kettle.colour"}


@pytest.mark.parametrize("variable", ["colour", "facts.colour"])
def test_name_or_key_is_reported_unless_the_template_asks_for_it(
    variable: str, missing_lookups: MissingLookups
) -> None:
    assert missing(missing_lookups, f"{{{{ {variable} }}}}", facts={}) == {variable}
    for asked in (
        f"{{% if not {variable} and 1 %}}white{{% endif %}}",
        f'{{{{ {variable}|default:"white" }}}}',
    ):
        assert missing(missing_lookups, asked, facts={}) == set()


def test_attribute_of_none_is_not_reported(missing_lookups: MissingLookups) -> None:
    assert missing(missing_lookups, "{{ kettle.lid.name }}", kettle=Kettle()) == set()
