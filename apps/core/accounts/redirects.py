"""Where the views of accounts lead to."""

from urllib.parse import urlencode

from django.http import HttpResponseRedirect
from django.urls import reverse


def to_section(section: str, **query: object) -> HttpResponseRedirect:
    """The settings page at one of its sections: /settings/?revoked=4#keys."""
    asked = f"?{urlencode(query)}" if query else ""
    return HttpResponseRedirect(f"{reverse('core:settings')}{asked}#{section}")
