"""Template context of every page: the navigation."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from apps.core.models import Appearance


@dataclass(frozen=True)
class Place:
    """An entry of the navigation."""

    label: str
    url_name: str
    pages: tuple[str, ...]
    """Its namespaces, and views of other namespaces that are reached from it."""
    icon: str


PLACES = (
    Place("Chat", "chat:index", ("chat",), "chat"),
    Place("Classify", "classifiers:index", ("classifiers", "datasets"), "classify"),
    Place("Generate", "generation:index", ("generation", "gateway:batch"), "generate"),
    Place(
        "Servers",
        "servers:index",
        ("servers", "monitoring", "tuning", "mcp", "gateway"),
        "servers",
    ),
)
_LISTED = frozenset(page for place in PLACES for page in place.pages)


_has_news: dict[str, Callable[[User], bool]] = {}


def register_news(url_name: str, has_news: Callable[[User], bool]) -> None:
    """Mark a place while something new is there for a person."""
    _has_news[url_name] = has_news


def navigation(request: HttpRequest) -> dict[str, object]:
    match = request.resolver_match
    here = ""
    if match and match.view_name != "core:home":
        here = match.view_name if match.view_name in _LISTED else match.namespace
    return {
        "places": PLACES,
        "here": here,
        "news": _places_with_news(request),
        "look": SimpleLazyObject(lambda: _look(request)),
    }


def _places_with_news(request: HttpRequest) -> Callable[[], set[str]]:
    """Return a function that a template calls, so that fragments ask nothing."""

    def places() -> set[str]:
        user = getattr(request, "user", None)
        if not isinstance(user, User):
            return set()
        return {name for name, has_news in _has_news.items() if has_news(user)}

    return places


def _look(request: HttpRequest) -> Appearance:
    """Return how pages look for this person; a fragment does not ask."""
    user = getattr(request, "user", None)
    try:
        saved = Appearance.objects.filter(pk=user.pk).first() if user and user.pk else None
    except DatabaseError:  # this may be the page that says so
        saved = None
    return saved or Appearance()
