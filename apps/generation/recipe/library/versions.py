"""Saved recipes and their versions."""

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Max, QuerySet

from apps.generation.models import RecipeVersion, SavedRecipe
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.recipe import Recipe
from apps.servers.models import Server

MAX_LISTED = 30
MAX_LIBRARY = 200
MAX_VERSIONS = 100


@transaction.atomic
def save_version(
    *,
    owner: User,
    name: str,
    recipe: Recipe,
    server: Server | None = None,
    model: str = "",
    keep: bool = False,
) -> RecipeVersion:
    """Saves a recipe under its name: a new version, or the newest one if nothing changed.

    Args:
        server: the server it was last used with; None: the default for generation.
        keep: list it among the person's recipes. A listed recipe stays listed.
    """
    saved, _ = SavedRecipe.objects.get_or_create(owner=owner, name=name[:200])
    saved = SavedRecipe.objects.select_for_update().get(pk=saved.pk)
    saved.server, saved.model, saved.kept = server, model, keep or saved.kept
    saved.save(update_fields=["server", "model", "kept"])
    newest = saved.versions.first()
    # Not their JSON: an earlier version of the program may have written the same otherwise.
    if newest is not None and recipes.parse(newest.body, stored=True) == recipe:
        return newest
    number = 1 if newest is None else newest.number + 1
    return RecipeVersion.objects.create(saved=saved, number=number, body=recipes.to_json(recipe))


def saved_recipes_of(owner: User | AnonymousUser) -> QuerySet[SavedRecipe]:
    """The recipes that a person listed, with `newest` and `number` of their newest version."""
    return _with_newest(owner).filter(kept=True)[:MAX_LISTED]


def all_recipes_of(owner: User | AnonymousUser) -> QuerySet[SavedRecipe]:
    """The recipes that a person listed, then those that only a job left."""
    return _with_newest(owner).order_by("-kept", "-newest")[:MAX_LIBRARY]


def _with_newest(owner: User | AnonymousUser) -> QuerySet[SavedRecipe]:
    found = SavedRecipe.objects.owned_by(owner).select_related("server")
    counted = found.annotate(newest=Max("versions__pk"), number=Max("versions__number"))
    return counted.filter(newest__isnull=False).order_by("-newest")


def newest_version(saved_id: int) -> RecipeVersion | None:
    return RecipeVersion.objects.filter(saved=saved_id).first()
