"""The tag that loads a page's scripts with their imports."""

import re
from pathlib import Path

import pytest
from django.template import Context, Template

TEMPLATES = Path(__file__).parent.parent.parent.parent / "templates"


def rendered(path: str) -> str:
    return Template(f'{{% module "{path}" %}}').render(Context())


def test_module_preloads_direct_and_indirect_imports_once() -> None:
    html = rendered("chat/conversation.js")
    hints = re.findall(r'<link rel="modulepreload" href="/static/([\w/]+\.js)">', html)
    assert html.endswith('<script type="module" src="/static/chat/conversation.js"></script>')
    thread = {"chat/thread/answer_stream.js", "chat/thread/tool_calls.js"}
    assert thread | {"core/clipboard.js"} <= set(hints)
    assert len(set(hints)) == len(hints)
    # Only the panel needs it, and fetches it.
    assert "chat/composer/structured_output.js" not in hints


def test_module_without_imports_has_no_hints() -> None:
    script = '<script type="module" src="/static/core/dialogs.js"></script>'
    assert rendered("core/dialogs.js") == script


def test_module_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"core/nothing\.js"):
        rendered("core/nothing.js")


def test_every_module_of_a_page_exists_with_its_imports() -> None:
    pages = [page.read_text() for page in TEMPLATES.rglob("*.html")]
    modules = {name for page in pages for name in re.findall(r"{% module .([\w/.]+). %}", page)}
    assert "chat/conversation.js" in modules
    for name in modules:
        rendered(name)


def test_every_page_loads_its_modules_by_the_tag() -> None:
    assert [page for page in TEMPLATES.rglob("*.html") if 'type="module"' in page.read_text()] == []
