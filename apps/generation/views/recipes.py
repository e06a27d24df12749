"""The library of recipes: versions, what differs between two of them, rename, delete."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.generation.models import RecipeVersion, SavedRecipe
from apps.generation.recipe.library import versions
from apps.generation.recipe.library.compare import compare_recipes, recipe_lines
from apps.generation.views.job_page.job_list import job_list

MAX_NAME = 200


def recipes_of(request: HttpRequest) -> Any:
    return SavedRecipe.objects.owned_by(request.user).select_related("server")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List the saved recipes, and those that jobs left."""
    context = job_list(request)
    context["recipes"] = versions.all_recipes_of(request.user)
    return render(request, "generation/recipes/index.html", context)


@require_safe
def saved_recipe(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a version of a recipe, and what differs from another one."""
    found = get_object_or_404(recipes_of(request), pk=pk)
    known = list(found.versions.all()[: versions.MAX_VERSIONS])
    shown = _version(known, request.GET.get("version", "")) or known[0]
    earlier = [version for version in known if version.number < shown.number]
    other = _version(known, request.GET.get("with", "")) or (earlier[0] if earlier else None)
    context = {
        **job_list(request),
        "list_recipe": found,
        "recipe": found,
        "versions": known,
        "shown": shown,
        "other": other if other != shown else None,
        "changes": compare_recipes(other.body, shown.body) if other else [],
        "lines": recipe_lines(shown.body),
    }
    return render(request, "generation/recipes/recipe.html", context)


def _version(known: list[RecipeVersion], text: str) -> RecipeVersion | None:
    return next((version for version in known if str(version.number) == text), None)


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a recipe another name; a listed one is kept on purpose."""
    found = get_object_or_404(recipes_of(request), pk=pk)
    name = request.POST.get("name", "").strip()[:MAX_NAME]
    taken = recipes_of(request).filter(name=name).exclude(pk=pk).exists()
    if not name:
        messages.error(request, "Enter a name for the recipe.")
    elif taken:
        messages.error(request, f"A recipe “{name}” exists. Choose another name.")
    else:
        found.name, found.kept = name, True
        found.save(update_fields=["name", "kept"])
        messages.success(request, f"Recipe renamed to “{name}”.")
    return redirect("generation:saved_recipe", pk)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a recipe with its versions; jobs keep their own copy."""
    found = get_object_or_404(recipes_of(request), pk=pk)
    found.delete()
    messages.success(request, f"Recipe “{found.name}” deleted. Its jobs are kept.")
    return redirect("generation:recipes")
