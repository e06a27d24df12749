"""The start page of Classify: all classifiers with their figures."""

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
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
