"""The library of recipes."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.generation.models import RecipeVersion, SavedRecipe
from tests.generation.conftest import JUDGED, message_of


@pytest.fixture
def recipe(alice: User) -> SavedRecipe:
    """A recipe of three versions."""
    saved = SavedRecipe.objects.create(owner=alice, name="Tickets", kept=True)
    for number, system in enumerate(("", "Be short.", "Be kind."), 1):
        RecipeVersion.objects.create(saved=saved, number=number, body={**JUDGED, "system": system})
    return saved


def shown(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def test_the_library_lists_recipes_and_those_of_jobs(
    browser: Client, bobs_browser: Client, recipe: SavedRecipe, alice: User
) -> None:
    left = SavedRecipe.objects.create(owner=alice, name="Left")
    RecipeVersion.objects.create(saved=left, number=1, body=JUDGED)
    page = shown(browser, "/generate/recipes/")
    assert page.index("Tickets") < page.index("Left")
    assert "Version 3" in page
    assert "· from a job" in page
    newest = recipe.versions.first()
    assert newest is not None
    assert f"/generate/new/?version={newest.pk}" in page
    assert "No recipes yet" in shown(bobs_browser, "/generate/recipes/")


@pytest.mark.parametrize(
    ("query", "shown_texts", "absent"),
    [
        (
            "",
            ["Changes from version 2 to 3", "system: Be short.", "system: Be kind."],
            "Use version",
        ),
        ("?version=2", ["Changes from version 1 to 2", "Use version 2"], "Be kind."),
        ("?version=3&with=1", ["Changes from version 1 to 3"], "Be short."),
        ("?version=1", ["Version 1"], "Changes from"),
        ("?version=x&with=9", ["Changes from version 2 to 3"], "Use version"),
    ],
)
def test_a_recipe_shows_a_version_and_its_changes(
    browser: Client, recipe: SavedRecipe, query: str, shown_texts: list[str], absent: str
) -> None:
    page = shown(browser, f"/generate/recipes/{recipe.pk}/{query}")
    for text in shown_texts:
        assert text in page
    assert absent not in page


def test_a_recipe_is_renamed(browser: Client, recipe: SavedRecipe, alice: User) -> None:
    address = f"/generate/recipes/{recipe.pk}/rename/"
    assert "Recipe renamed to “Mails”." in message_of(browser, address, {"name": " Mails "})
    SavedRecipe.objects.create(owner=alice, name="Taken")
    assert "A recipe “Taken” exists." in message_of(browser, address, {"name": "Taken"})
    assert "Enter a name" in message_of(browser, address, {"name": " "})
    recipe.refresh_from_db()
    assert recipe.name == "Mails"


def test_a_recipe_is_deleted(browser: Client, recipe: SavedRecipe) -> None:
    page = message_of(browser, f"/generate/recipes/{recipe.pk}/delete/", {})
    assert "Recipe “Tickets” deleted." in page
    assert not SavedRecipe.objects.exists()


@pytest.mark.parametrize(
    ("method", "path"), [("get", ""), ("post", "rename/"), ("post", "delete/")]
)
def test_someone_elses_recipe_is_not_found(
    bobs_browser: Client, recipe: SavedRecipe, method: str, path: str
) -> None:
    answer = getattr(bobs_browser, method)(f"/generate/recipes/{recipe.pk}/{path}")
    assert answer.status_code == 404
    assert SavedRecipe.objects.count() == 1
