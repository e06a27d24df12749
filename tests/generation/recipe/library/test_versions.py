"""Saved recipes: one version for each change."""

import pytest
from django.contrib.auth.models import User

from apps.generation.models import RecipeVersion, SavedRecipe
from apps.generation.recipe.library.versions import save_version, saved_recipes_of
from apps.generation.recipe.parse import parse
from tests.generation.recipe.test_parse import REVIEWS

RECIPE = parse(REVIEWS)
OTHER = parse(REVIEWS | {"prompt": "Write about a {{ product }}."})


def test_an_unchanged_recipe_has_one_version(alice: User) -> None:
    first = save_version(owner=alice, name="R", recipe=RECIPE)
    again = save_version(owner=alice, name="R", recipe=parse(REVIEWS))
    assert first == again
    assert first.number == 1
    assert parse(first.body) == RECIPE


def test_a_change_is_a_new_version_and_so_is_the_change_back(alice: User) -> None:
    numbers = [
        save_version(owner=alice, name="R", recipe=recipe).number
        for recipe in (RECIPE, OTHER, OTHER, RECIPE)
    ]
    assert numbers == [1, 2, 2, 3]
    assert SavedRecipe.objects.count() == 1


def test_the_same_columns_in_older_json_are_unchanged(alice: User) -> None:
    """The kind of a category could be left out."""
    data = {"columns": [{"name": "a", "values": [" x ", 1]}], "prompt": "{{ a }}"}
    first = save_version(owner=alice, name="R", recipe=parse(data))
    RecipeVersion.objects.filter(pk=first.pk).update(body=data)
    assert save_version(owner=alice, name="R", recipe=parse(data)) == first


def test_people_have_recipes_of_their_own(alice: User, bob: User) -> None:
    mine = save_version(owner=alice, name="R", recipe=RECIPE, keep=True)
    theirs = save_version(owner=bob, name="R", recipe=OTHER)
    assert mine.saved != theirs.saved
    assert [saved.pk for saved in saved_recipes_of(alice)] == [mine.saved_id]
    assert not saved_recipes_of(bob)


def test_a_listed_recipe_stays_listed(alice: User) -> None:
    save_version(owner=alice, name="R", recipe=RECIPE, keep=True)
    save_version(owner=alice, name="R", recipe=OTHER)
    [saved] = saved_recipes_of(alice)
    assert (saved.kept, saved.number) == (True, 2)  # type: ignore[attr-defined]


def test_a_long_name_is_cut(alice: User) -> None:
    assert len(save_version(owner=alice, name="x" * 300, recipe=RECIPE).saved.name) == 200


@pytest.mark.parametrize(("server", "lost"), [("gone", True), ("", False)])
def test_a_recipe_of_a_removed_server_says_so(alice: User, server: str, lost: bool) -> None:
    saved = save_version(owner=alice, name="R", recipe=RECIPE, model=server).saved
    assert saved.lost_its_server is lost
