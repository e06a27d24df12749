"""Headers of static files: they are answered before any other middleware is reached."""

from collections.abc import MutableMapping


def add_static_headers(headers: MutableMapping[str, str], path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
