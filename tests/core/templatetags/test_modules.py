"""Scripts of a page, and what they import."""

import re
from pathlib import Path

import pytest
from django.template import Context, Template

TEMPLATES = Path(__file__).parent.parent.parent.parent / "templates"


def rendered(path: str) -> str:
    return Template(f'{{% module "{path}" %}}').render(Context())


def test_all_that_is_imported_is_asked_for_at_once() -> None:
    html = rendered("js/chat.js")
    hints = re.findall(r'<link rel="modulepreload" href="/static/js/(\w+\.js)">', html)
    assert html.endswith('<script type="module" src="/static/js/chat.js"></script>')
    assert {"answer_stream.js", "chat_tools.js", "live_text.js", "clipboard.js"} <= set(hints)
    assert len(set(hints)) == len(hints)
    assert "answer_fields.js" not in hints  # only the panel needs it, and fetches it


def test_a_module_that_imports_nothing() -> None:
    assert rendered("js/shell.js") == '<script type="module" src="/static/js/shell.js"></script>'


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"js/nothing\.js"):
        rendered("js/nothing.js")


def test_every_page_names_its_modules_so() -> None:
    assert [page for page in TEMPLATES.rglob("*.html") if 'type="module"' in page.read_text()] == []
