"""A test fails when a template of ours reads what does not exist.

Django shows nothing there and logs one line at level DEBUG: after a rename the page lacks what it
was made for, and answers 200 all the same. What may be missing:

- an attribute of None: a relation that is not set;
- a name of the context, a key of a dict or a related object where the template itself asks whether
  it is there: `{% if error %}`, `{{ plan.name|default:file_name }}`.

An attribute that an object does not have is an error everywhere.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.template.base import FilterExpression, VariableDoesNotExist
from django.template.context import BaseContext
from django.template.defaulttags import TemplateLiteral

LOGGER = logging.getLogger("django.template")
# Such an object may lack something; what it is asked for is not a name in our code.
OPEN_TYPES = (BaseContext, Mapping, Sequence)
# Filters that say what is shown instead.
FALLBACKS = {"default", "default_if_none", "yesno"}


class MissingLookups(logging.Filter):
    """Collects the look-ups that found nothing, as `chat/page.html: conversation.title`.

    A filter of the logger, not a handler: the lines go no further. Whoever writes them out writes
    the whole context, which asks the database for every query set in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.msg.startswith("Exception while resolving variable") or not record.exc_info:
            return True
        _, error, trace = record.exc_info
        if trace is None or may_be_missing(error, trace.tb_frame):
            return False
        if template := own_template(trace):
            self.found.add(f"{template}: {trace.tb_frame.f_locals['self'].var}")
        return False


def may_be_missing(error: BaseException | None, frame: FrameType) -> bool:
    if isinstance(error, VariableDoesNotExist):
        parent = error.params[1]
        return parent is None or (isinstance(parent, OPEN_TYPES) and is_asked_for(frame))
    return isinstance(error, ObjectDoesNotExist) and is_asked_for(frame)


def is_asked_for(frame: FrameType | None) -> bool:
    """True where the variable stands in an `{% if %}` or before a filter with a fallback."""
    for _ in range(5):  # FilterExpression.resolve, and the tag's own methods around it
        if frame is None:
            return False
        owner = frame.f_locals.get("self")
        if isinstance(owner, TemplateLiteral):
            return True
        if isinstance(owner, FilterExpression) and has_fallback(owner):
            return True
        frame = frame.f_back
    return False


def has_fallback(expression: FilterExpression) -> bool:
    first: Any = next(iter(expression.filters), None)
    return first is not None and first[0].__name__ in FALLBACKS


def own_template(trace: TracebackType) -> str:
    """The template that was rendered, or its base; "" for one of a library."""
    context = trace.tb_frame.f_locals["context"]
    template = context.render_context.template
    folder = f"{settings.BASE_DIR / 'templates'}/"
    path = str(template.origin.name) if template else ""
    if not path.startswith(folder):
        return ""
    outer = getattr(context, "template_name", None) or ""
    name = path.removeprefix(folder)
    return name if outer == name else f"{name} (for {outer})"


@pytest.fixture(scope="session")
def missing_lookups() -> Iterator[MissingLookups]:
    lookups, level = MissingLookups(), LOGGER.level
    LOGGER.addFilter(lookups)
    LOGGER.setLevel(logging.DEBUG)
    yield lookups
    LOGGER.removeFilter(lookups)
    LOGGER.setLevel(level)


@pytest.fixture(autouse=True)
def _templates_find_what_they_read(missing_lookups: MissingLookups) -> Iterator[None]:
    LOGGER.setLevel(logging.DEBUG)  # a test that calls django.setup() has reset it
    missing_lookups.found.clear()
    yield
    found, missing_lookups.found = sorted(missing_lookups.found), set()
    assert not found, "Templates read what does not exist:\n" + "\n".join(found)
