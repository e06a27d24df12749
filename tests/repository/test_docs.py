"""What the documentation says is so."""

import json
import re
from pathlib import Path

import pytest
from django.test import Client

ROOT = Path(__file__).parents[2]
READ_BY_SETTINGS = re.compile(
    r'env\.(?:text|integer|seconds|boolean|words|figures|networks)\(\s*"(\w+)"', re.MULTILINE
)


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    settings = (ROOT / "workbench" / "settings.py").read_text(encoding="utf-8")
    names = READ_BY_SETTINGS.findall(settings)
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_readme_names_settings_that_exist() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([A-Z]+_[A-Z_]+)`", readme)
    assert len(named) > 5
    assert [name for name in named if f"`{name}`" not in page] == []


@pytest.mark.parametrize("document", ["README.md", *map(str, Path("docs").glob("*.md"))])
def test_links_and_pictures_lead_somewhere(document: str) -> None:
    page = ROOT / document
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("document", ["architecture.md", "glossary.md"])
def test_places_that_are_named_exist(document: str) -> None:
    """`apps/llm/client.py`, and in the architecture `llm/client.py` for short."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    places = re.findall(r"`((?:[\w.]+/)+(?:[\w.]+\.\w+)?)`", text)
    assert len(places) > 20
    missing = [
        place
        for place in places
        if not (ROOT / place).exists() and not (ROOT / "apps" / place).exists()
        if place not in {"views/", "api/"}  # of every room
    ]
    assert missing == []


def test_the_architecture_fits_on_two_screens() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()) <= 90


def test_vendored_scripts_carry_the_version_in_their_name() -> None:
    base = (ROOT / "templates" / "base.html").read_text(encoding="utf-8")
    for name in ("htmx", "uplot"):
        (script,) = (ROOT / "static" / "vendor" / name).glob("*.min.js")
        version = re.fullmatch(rf"{name}-([\d.]+)\.min\.js", script.name)
        assert version is not None
        assert version[1] in script.read_text(encoding="utf-8")
        if name == "htmx":
            assert script.name in base


def test_the_api_documents_itself(browser: Client) -> None:
    page = browser.get("/api/v1/docs").content.decode()
    assert "swagger" in page
    for path in re.findall(r'<a href="(/[^"#]*)', page):
        assert browser.get(path).status_code in {200, 302}
    document = json.loads(browser.get("/api/v1/openapi.json").content)
    assert "/api/v1/servers" in document["paths"]
    assert "Authorization: Bearer" in document["info"]["description"]
    for path in re.findall(r"\]\((/[^#)]*)", document["info"]["description"]):
        assert browser.get(path).status_code in {200, 302}
