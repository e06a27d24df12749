"""The form for a new classifier."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.classifiers import services
from apps.classifiers.errors import CannotTrain
from apps.classifiers.forms import ClassifierForm
from apps.classifiers.training.estimator import MIN_TEXTS
from apps.classifiers.training.label_rules import LabelOptions
from apps.classifiers.views.run_page import parse_number, signed_in_user
from apps.datasets.models import Dataset
from apps.embeddings.services import Preparation
from apps.servers.services import NoServer


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
    return {"form": form, "has_datasets": Dataset.objects.owned_by(user).exists()}
