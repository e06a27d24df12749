"""The start page of Classify, and the list beside all its pages."""

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.views.run.run_page import parse_number
from apps.datasets.models import Dataset


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


@require_safe
def list_rows(request: HttpRequest) -> HttpResponse:
    """The rows of the list, while something trains. The open one is named in the address."""
    classifier = parse_number(request.GET.get("classifier") or "0")
    dataset = parse_number(request.GET.get("dataset") or "0")
    context = {
        "classifier": Classifier.objects.owned_by(request.user).filter(pk=classifier or 0).first(),
        "dataset": Dataset.objects.owned_by(request.user).filter(pk=dataset or 0).first(),
    }
    return render(request, "classifiers/_list_update.html", context)
