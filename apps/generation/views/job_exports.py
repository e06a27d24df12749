"""Rows of a job as files and as datasets."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.datasets.models import Dataset
from apps.datasets.services import NothingUsable
from apps.generation.exports import to_dataset
from apps.generation.exports.add_to_dataset import add_job_rows
from apps.generation.exports.data_card import data_card
from apps.generation.exports.downloads import export_response
from apps.generation.exports.formats import Format
from apps.generation.recipe.problems import RecipeError
from apps.generation.views.jobs import can_train, jobs_of, target_dataset


@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponseBase:
    found = get_object_or_404(jobs_of(request), pk=pk)
    name = request.GET.get("format", "jsonl")
    if name not in set(Format):
        raise Http404
    try:
        return export_response(
            found,
            Format(name),
            user=request.GET.get("user"),
            assistant=request.GET.get("assistant"),
            numbered=request.GET.get("numbered") == "1",
        )
    except RecipeError as error:
        messages.error(request, str(error))
        return redirect("generation:use", pk)


@require_safe
def card(request: HttpRequest, pk: int) -> HttpResponse:
    """The data card as a file."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    return JsonResponse(
        data_card(found),
        json_dumps_params={"ensure_ascii": False, "indent": 2},
        headers={"Content-Disposition": 'attachment; filename="data-card.json"'},
    )


@require_POST
def compare(request: HttpRequest, pk: int) -> HttpResponse:
    """Makes the datasets that show what the rows are worth, and has all three trained at once."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    mine = Dataset.objects.owned_by(request.user)
    chosen = request.POST.get("real", "")
    real = get_object_or_404(mine, pk=int(chosen) if chosen.isdecimal() else 0)
    try:
        alone, both = to_dataset.comparison(
            job=found,
            real=real,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted) as error:
        messages.error(request, str(error))
        return redirect("generation:use", pk)
    query = urlencode({"real": real.pk, "synthetic": alone.pk, "both": both.pk})
    # The browser posts on: training is the classifiers' affair, and one press is enough.
    return redirect(f"{reverse('classifiers:dataset_value')}?{query}", preserve_request=True)


@require_POST
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    try:
        made = to_dataset.to_dataset(
            job=found,
            name=request.POST.get("name", "").strip()[:200] or found.name,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted) as error:
        messages.error(request, str(error))
        return redirect("generation:use", pk)
    messages.success(request, f"Dataset “{made.name}” created with {made.rows:,} rows.")
    return redirect(reverse("datasets:detail", args=[made.pk]))


@require_POST
def add_to_dataset(request: HttpRequest, pk: int) -> HttpResponse:
    """Adds the accepted rows to a dataset, and where that is asked for has its classifier trained
    with them."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    mine = Dataset.objects.owned_by(request.user)
    chosen = request.POST.get("dataset", "")
    if asked := bool(request.POST.get("train")):
        target = target_dataset(request, found)
        if target is None:
            messages.error(request, "The dataset of that classifier is gone. Choose another one.")
            return redirect("generation:use", pk)
        dataset = target
    else:
        dataset = get_object_or_404(mine, pk=int(chosen) if chosen.isdecimal() else 0)
    train = asked and can_train(found, dataset)
    try:
        added = add_job_rows(
            job=found,
            dataset=dataset,
            text_field=request.POST.get("text_field", ""),
            label_field=request.POST.get("label_field", ""),
            by=found.owner,
        )
    except (RecipeError, NothingUsable, to_dataset.NothingAccepted, ValueError) as error:
        messages.error(request, str(error))
        return redirect("generation:use", pk)
    messages.success(request, f"“{dataset.name}”: {added}")
    if asked and not train:
        messages.warning(
            request,
            "Nothing was trained: the classifier was deleted, or is trained on another dataset.",
        )
    if added.rows and train:
        # The browser posts on: training is the classifiers' affair.
        again = reverse("classifiers:train", args=[found.for_classifier])
        return redirect(again, preserve_request=True)
    return redirect("datasets:detail", dataset.pk)
