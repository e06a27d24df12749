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
    namespaces: tuple[str, ...]
    icon: str


PLACES = (
    Place("Chat", "chat:index", ("chat",), "chat"),
    Place("Classify", "classifiers:index", ("classifiers", "datasets"), "classify"),
    Place("Generate", "generation:index", ("generation",), "generate"),
    Place("Servers", "servers:index", ("servers", "monitoring", "tuning", "mcp"), "servers"),
)


_has_news: dict[str, Callable[[User], bool]] = {}


def register_news(url_name: str, has_news: Callable[[User], bool]) -> None:
    """Mark a place while something new is there for a person."""
    _has_news[url_name] = has_news


def navigation(request: HttpRequest) -> dict[str, object]:
    match = request.resolver_match
    here = match.namespace if match and match.view_name != "core:home" else ""
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
