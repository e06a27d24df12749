"""Template context of every page: the navigation."""

from dataclasses import dataclass

from django.http import HttpRequest


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
    Place("Servers", "servers:index", ("servers", "mcp"), "servers"),
)


def navigation(request: HttpRequest) -> dict[str, object]:
    here = request.resolver_match.namespace if request.resolver_match else ""
    return {"places": PLACES, "here": here}
