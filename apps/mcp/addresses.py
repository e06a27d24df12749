"""Which addresses a tool server may have."""

from urllib.parse import urlsplit

from django.core.validators import RegexValidator
from django.forms import ValidationError

from apps.core import outgoing

# As for model servers: no user name, password or backslash. A query is allowed.
ADDRESS = RegexValidator(
    r"^https?://[\w.:\[\]-]+(/[\w./~%-]*)?(\?[\w.~%=&-]*)?$",
    "Enter an address such as http://127.0.0.1:8000/mcp.",
)
PRIVATE = (
    "Personal tool servers cannot use private addresses. "
    "Enter a public address, or ask an admin to add the server for everyone."
)


def check(url: str, *, allow_private: bool) -> None:
    """Refuse what is no address, and hosts that are private by their very name.

    Names that resolve to private addresses are refused when they are connected to.

    Raises:
        ValidationError
    """
    ADDRESS(url)
    try:
        parts = urlsplit(url)
        _ = parts.port  # brackets and ports are checked here
    except ValueError as error:
        raise ValidationError(ADDRESS.message) from error
    if not allow_private and outgoing.names_private_host(parts.hostname or ""):
        raise ValidationError(PRIVATE)
