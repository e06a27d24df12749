"""Our JavaScript modules in a page. Built into every template (settings.TEMPLATES)."""

import re
from functools import cache
from pathlib import Path

from django import template
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

# Of the same folder, and at once: `import("./some.js")` is meant to come later.
_IMPORT = re.compile(r'^import (?:[^"]* from )?"\./([^"]+)";', re.MULTILINE)


@register.simple_tag
def module(path: str) -> SafeString:
    """{% module "js/chat.js" %}: the script, and everything it imports asked for beside it.

    A browser that is not told learns of imports level by level. Keys and htmx's buttons do nothing
    until the last of them is there, on a page that is shown already.
    """
    imported = ((static(name),) for name in imports_of(path))
    hints = format_html_join("", '<link rel="modulepreload" href="{}">', imported)
    return format_html('{}<script type="module" src="{}"></script>', hints, static(path))


@cache
def imports_of(path: str) -> tuple[str, ...]:
    """What a module imports, and what that imports, each once. Paths as {% static %} takes them.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    folder = path.rpartition("/")[0]
    found: dict[str, None] = {}
    waiting = [path]
    while waiting:
        for name in _IMPORT.findall(_source(waiting.pop())):
            inner = f"{folder}/{name}"
            if inner not in found:
                found[inner] = None
                waiting.append(inner)
    return tuple(found)


def _source(path: str) -> str:
    file = finders.find(path)
    if file is None:
        raise FileNotFoundError(f"There is no static file {path}.")
    return Path(file).read_text(encoding="utf-8")
