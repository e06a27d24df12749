"""Template tag for JavaScript modules, built into every template (settings.TEMPLATES)."""

import posixpath
import re
from functools import cache
from pathlib import Path

from django import template
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

# Static imports by a relative path. `import("./some.js")` loads later, when it is needed.
_IMPORT = re.compile(r'^import (?:[^"]* from )?"(\.\.?/[^"]+)";', re.MULTILINE)


@register.simple_tag
def module(path: str) -> SafeString:
    """{% module "chat/conversation.js" %}: the script, with a preload hint for each of its imports.

    Without hints a browser learns of imports level by level. Keys and htmx's buttons do nothing
    until the last of them is loaded, on a page that is shown already.
    """
    imported = ((static(name),) for name in imports_of(path))
    hints = format_html_join("", '<link rel="modulepreload" href="{}">', imported)
    return format_html('{}<script type="module" src="{}"></script>', hints, static(path))


@cache
def imports_of(path: str) -> tuple[str, ...]:
    """Return the static imports of a module, direct and indirect, each once, as {% static %} paths.

    Raises:
        FileNotFoundError: the module or one of its imports does not exist.
    """
    imports: dict[str, None] = {}
    unread = [path]
    while unread:
        module_path = unread.pop()
        for target in _IMPORT.findall(_source(module_path)):
            imported = posixpath.normpath(f"{posixpath.dirname(module_path)}/{target}")
            if imported not in imports:
                imports[imported] = None
                unread.append(imported)
    return tuple(imports)


def _source(path: str) -> str:
    file = finders.find(path)
    if file is None:
        raise FileNotFoundError(f"No static file {path}.")
    return Path(file).read_text(encoding="utf-8")
