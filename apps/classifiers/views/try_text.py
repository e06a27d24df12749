"""Classify one text from the page."""

from time import perf_counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import aget_object_or_404, render
from django.views.decorators.http import require_POST

from apps.classifiers.errors import BadArtefact
from apps.classifiers.models import Classifier
from apps.classifiers.prediction import predict, text_checks
from apps.classifiers.views.run.run_page import EXPECTED
from apps.core.quotas import limited
from apps.runtime.async_db import in_db

TOP = 5


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
            if problems := text_checks.check_texts([text]):
                raise BadArtefact(problems[0])
            started = perf_counter()
            (prediction,) = await predict.load_and_predict(classifier, [text], top=TOP)
            context |= {"prediction": prediction, "seconds": perf_counter() - started}
        except EXPECTED as error:
            context["error"] = str(error)
    return await in_db(render, request, "classifiers/prediction/_prediction.html", context)
