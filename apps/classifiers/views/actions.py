"""Train, cancel and delete a classifier."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.classifiers import services
from apps.classifiers.errors import CannotTrain
from apps.classifiers.views.run.run_page import get_classifier


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
