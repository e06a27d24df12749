from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.classifiers import services
from apps.classifiers.errors import BadArtefact, CannotTrain
from apps.classifiers.forms import ClassifierForm
from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.prediction import predict
from apps.classifiers.training.estimator import MIN_TEXTS
from apps.classifiers.training.label_rules import LabelOptions
from apps.classifiers.views.run_page import EXPECTED, get_classifier, parse_number, signed_in_user
from apps.core.quotas import limited
from apps.datasets.models import Dataset
from apps.datasets.services import LabelCount, label_variants
from apps.embeddings.services import Preparation
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer

TOP = 5
RUNS_SHOWN = 30
VARIANTS = 10


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    newest = Run.objects.filter(classifier=OuterRef("pk")).order_by("-number")
    classifiers = (
        Classifier.objects.owned_by(request.user)
        .select_related("dataset", "current")
        .annotate(status=Subquery(newest.values("status")[:1]))
        .defer(*(f"current__{name}" for name in LARGE_FIELDS))
    )
    context = {
        "classifiers": classifiers,
        "has_datasets": Dataset.objects.owned_by(request.user).exists(),
    }
    return render(request, "classifiers/index.html", context)


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


@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    context = _run_context(request, classifier, parse_number(request.GET.get("run")))
    return render(request, "classifiers/training/overview.html", context)


@require_safe
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest run as it is now, and the list of all; the page asks until the run has ended."""
    return render(
        request,
        "classifiers/training/_run_update.html",
        _run_context(request, get_classifier(request, pk), None),
    )


@require_safe
def charts(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The numbers behind a run's charts. The matrix comes sparse: most of it is empty."""
    run = get_object_or_404(get_classifier(request, pk).runs, number=number)
    cells = [
        [truth, predicted, count]
        for truth, row in enumerate(run.confusion)
        for predicted, count in enumerate(row)
        if count
    ]
    labels = [entry["label"] for entry in run.per_class]
    support = [entry["support"] for entry in run.per_class]
    return JsonResponse(
        {
            "labels": labels,
            "support": support,
            "cells": cells,
            "reliability": run.reliability,
            "curve": run.learning_curve,
        }
    )


@require_POST
def train(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    try:
        services.start_run(classifier)
    except CannotTrain as error:
        messages.error(request, str(error))
    return redirect("classifiers:detail", classifier.pk)


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    for run in classifier.runs.active():
        services.cancel(run)
    return redirect("classifiers:detail", classifier.pk)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    classifier = get_classifier(request, pk)
    services.delete_classifier(classifier)
    messages.success(request, f"“{classifier.name}” deleted. Its dataset is kept.")
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("classifiers:index")})
    return redirect("classifiers:index")


@require_POST
@limited("predictions")
async def try_text(request: HttpRequest, pk: int) -> HttpResponse:
    """The likeliest labels of one text, as a fragment."""
    classifier = await aget_object_or_404(
        Classifier.objects.owned_by(await request.auser()).select_related("server"), pk=pk
    )
    text = request.POST.get("text", "")
    context: dict[str, Any] = {"text": text}
    if text.strip():
        try:
            if problems := predict.check_texts([text]):
                raise BadArtefact(problems[0])
            (prediction,) = await predict.load_and_predict(classifier, [text], top=TOP)
            context["prediction"] = prediction
        except EXPECTED as error:
            context["error"] = str(error)
    return await in_db(render, request, "classifiers/prediction/_prediction.html", context)


def _run_context(
    request: HttpRequest, classifier: Classifier, number: int | None
) -> dict[str, Any]:
    """The run to show: the one asked for; else the newest while it has no numbers to show, and then
    the one that answers."""
    runs = classifier.runs
    run = newest = get_object_or_404(runs, number=number) if number else runs.first()
    answers = classifier.current_id
    if number is None and run is not None and run.is_ready and answers not in {None, run.pk}:
        run = runs.filter(pk=answers).first() or run
    return {
        "classifier": classifier,
        "tab": "overview",
        "run": run,
        "waiting": newest if newest != run else None,
        "variants": _variants(classifier, run) if number is None else [],
        "runs": runs.for_lists()[:RUNS_SHOWN],
        "older": number is not None,
        "predict_url": request.build_absolute_uri(
            reverse("api-1:predict", kwargs={"pk": classifier.pk})
        ),
    }


def _variants(classifier: Classifier, run: Run | None) -> list[list[LabelCount]]:
    """Labels it learnt to tell apart that differ only in case or spacing, and still do."""
    if run is None or not run.is_ready or classifier.dataset is None:
        return []
    trained = {entry["label"] for entry in run.per_class}
    counts = classifier.dataset.label_counts
    return label_variants({label: n for label, n in counts.items() if label in trained})[:VARIANTS]


def _form_context(user: User, form: ClassifierForm) -> dict[str, Any]:
    return {"form": form, "has_datasets": Dataset.objects.owned_by(user).exists()}
