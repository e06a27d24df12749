"""Recipes under a name, and their versions."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.generation import recipe as recipes
from apps.generation.models import RecipeVersion, SavedRecipe
from apps.generation.plan import Recipe


@transaction.atomic
def save(*, owner: User, name: str, recipe: Recipe) -> RecipeVersion:
    """The recipe under its name: the newest version if nothing was changed, else a new one."""
    saved, _ = SavedRecipe.objects.get_or_create(owner=owner, name=name[:200])
    SavedRecipe.objects.select_for_update().get(pk=saved.pk)
    body: dict[str, Any] = recipes.as_dict(recipe)
    newest = saved.versions.first()
    if newest is not None and newest.body == body:
        return newest
    number = 1 if newest is None else newest.number + 1
    return RecipeVersion.objects.create(saved=saved, number=number, body=body)
