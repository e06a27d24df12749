"""The form for a new classifier."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.classifiers import services
from apps.classifiers.errors import CannotTrain
from apps.classifiers.forms import ClassifierForm
from apps.classifiers.training import checklist
from apps.classifiers.training.estimator import MIN_TEXTS
from apps.classifiers.training.label_quality.label_rules import LabelOptions
from apps.classifiers.views.run.run_page import parse_number, signed_in_user
from apps.datasets import services as datasets
from apps.datasets.models import Dataset
from apps.embeddings.services import Preparation
from apps.servers.services import NoServer

GENERATED_EACH = 20  # rows of a label that has few
MOST_GENERATED = 20  # labels in one job


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    user = signed_in_user(request)
    if request.method != "POST":
        chosen = _asked_for(request, "dataset")
        initial = {
            "dataset": chosen,
            "test_dataset": _asked_for(request, "test_dataset"),
            "name": chosen.name if chosen else "",
        }
        form = ClassifierForm(user, initial=initial)
        return render(request, "classifiers/new.html", _form_context(user, form))
    form = ClassifierForm(user, request.POST)
    if form.is_valid():
        try:
            given = dict(form.cleaned_data)
            preparation = Preparation.read(
                {
                    "prefix": given.pop("text_prefix"),
                    "dimensions": given.pop("dimensions"),
                    "long_texts": given.pop("long_texts"),
                }
            )
            choices = LabelOptions(
                given.pop("rare_labels") or "leave_out",
                given.pop("rare_below") or MIN_TEXTS,
                given.pop("train_oos"),
            )
            classifier, _ = services.create_classifier(
                owner=user, preparation=preparation, choices=choices, **given
            )
        except (NoServer, CannotTrain) as error:
            form.add_error(None, str(error))
        else:
            return redirect("classifiers:detail", classifier.pk)
    return render(request, "classifiers/new.html", _form_context(user, form), status=422)


def _asked_for(request: HttpRequest, name: str) -> Dataset | None:
    """The dataset that a link to the form names."""
    mine = Dataset.objects.owned_by(signed_in_user(request))
    return mine.filter(pk=parse_number(request.GET.get(name)) or 0).first()


def _form_context(user: User, form: ClassifierForm) -> dict[str, Any]:
    """The form, and the checklist of the dataset that is chosen in it."""
    chosen = form["dataset"].value()
    mine = Dataset.objects.owned_by(user)
    number = chosen.pk if isinstance(chosen, Dataset) else chosen
    known = str(number).isdecimal() and mine.filter(pk=number).first()
    return {"form": form, "has_datasets": mine.exists()} | _checks(known or mine.first())


def _checks(dataset: Dataset | None) -> dict[str, Any]:
    if dataset is None:
        return {"checked": None}
    counts = {label: count for label, count in dataset.label_counts.items() if label}
    few = [label for label, count in counts.items() if count < checklist.FEW]
    return {
        "checked": dataset,
        "checks": checklist.check(counts, dataset.rows, datasets.report(dataset)),
        "few": few[:MOST_GENERATED],
        "generated": GENERATED_EACH * len(few[:MOST_GENERATED]),
        "undoable": datasets.last_undoable(dataset),
    }


@require_safe
def checks(request: HttpRequest) -> HttpResponse:
    """The checklist of another dataset, with the button that it may disable."""
    dataset = _asked_for(request, "dataset")
    if dataset is None:
        raise Http404
    context = _checks(dataset) | {"oob": True}
    return render(request, "classifiers/training/_checklist.html", context)


@require_POST
def merge_variants(request: HttpRequest, dataset: int) -> HttpResponse:
    """Merge each group of labels that differ only in case or spacing into its most frequent."""
    user = signed_in_user(request)
    chosen = get_object_or_404(Dataset.objects.owned_by(user), pk=dataset)
    merged = 0
    try:
        for group in datasets.label_variants(chosen.label_counts):
            names = [entry["label"] for entry in group if entry["label"]]
            datasets.merge_labels(chosen, names, names[0], by=user)
            merged += 1
    except ValueError as error:
        messages.error(request, str(error))
    else:
        groups = "1 group" if merged == 1 else f"{merged:,} groups"
        messages.success(request, f"{groups} of labels merged. You can undo this.")
    return redirect(f"{reverse('classifiers:new')}?dataset={chosen.pk}")


@require_POST
def train_example(request: HttpRequest) -> HttpResponse:
    """Import the example dataset and train on it."""
    user = signed_in_user(request)
    try:
        with transaction.atomic():
            dataset = datasets.create_example_dataset(user)
            classifier, _ = services.create_classifier(
                owner=user, name=dataset.name, dataset=dataset
            )
    except (NoServer, CannotTrain) as error:
        messages.error(request, str(error))
        return redirect("core:home")
    return redirect("classifiers:detail", classifier.pk)
