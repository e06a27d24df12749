"""What made rows are worth: three classifiers, load_run_predictions on the same real test rows."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.classifiers import services
from apps.classifiers.errors import CannotTrain, NoRowResults
from apps.classifiers.evaluation import dataset_value as gains
from apps.classifiers.evaluation.statistics import mcnemar
from apps.classifiers.models import LARGE_FIELDS, Classifier, Run
from apps.classifiers.views.run.run_page import load_run_predictions, parse_number, signed_in_user
from apps.datasets.models import Dataset
from apps.servers.services import NoServer

SIDES = (
    ("real", "Real rows only"),
    ("synthetic", "Synthetic rows only"),
    ("both", "Both"),
)


@require_http_methods(["GET", "HEAD", "POST"])
def dataset_value(request: HttpRequest) -> HttpResponse:
    """Three datasets with the same test rows: trains on each by one button, then compares.

    The address says all there is to know: the keys of the datasets, and those of the classifiers
    once they are made (`trained`, in the same order).
    """
    given = request.GET.copy()
    given.update(request.POST)  # what is posted on from a job has part of it in the address
    mine = Dataset.objects.owned_by(signed_in_user(request))
    datasets = [get_object_or_404(mine, pk=parse_number(given.get(name)) or 0) for name, _ in SIDES]
    if request.method == "POST":
        try:
            keys = _train(request, datasets)
        except (NoServer, CannotTrain) as error:
            messages.error(request, str(error))
            keys = []
        query = QueryDict(mutable=True)
        query.update({name: str(one.pk) for (name, _), one in zip(SIDES, datasets, strict=True)})
        query.setlist("trained", [str(key) for key in keys])
        return redirect(f"{reverse('classifiers:dataset_value')}?{query.urlencode()}")
    context = _context(request, datasets, given.getlist("trained"))
    fragment = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    return render(
        request, f"classifiers/evaluation/{'_' if fragment else ''}dataset_value.html", context
    )


def _train(request: HttpRequest, datasets: list[Dataset]) -> list[int]:
    """The keys of the classifiers, 0 where synthetic rows alone allow none: rows made for a few
    labels are worth something beside real ones, and that is the question.

    Raises:
        NoServer: no server is set for embeddings.
        CannotTrain: real rows, or both together, allow no classifier.
    """
    runs: list[Run | None] = []
    with transaction.atomic():  # what the verdict compares, or nothing
        for (side, _), dataset in zip(SIDES, datasets, strict=True):
            try:
                made = services.create_classifier(
                    owner=signed_in_user(request), name=dataset.name, dataset=dataset
                )
            except CannotTrain as error:
                if side != "synthetic":
                    raise
                messages.info(request, f"Synthetic rows alone are not trained on: {error}")
                runs.append(None)
            else:
                runs.append(made[1])
    return [run.classifier_id if run else 0 for run in runs]


def _context(request: HttpRequest, datasets: list[Dataset], trained: list[str]) -> dict[str, Any]:
    mine = Classifier.objects.owned_by(request.user)
    if trained and len(trained) != len(SIDES):
        raise Http404
    runs = [
        None
        if key == "0" and name == "synthetic"
        else _last_run(get_object_or_404(mine, pk=parse_number(key) or 0))
        for key, (name, _) in zip(trained, SIDES, strict=False)
    ]
    sides = [
        {"label": label, "dataset": dataset, "rows": dataset.rows - dataset.test_rows}
        for (_, label), dataset in zip(SIDES, datasets, strict=True)
    ]
    for side, run in zip(sides, runs, strict=False):
        side |= {"run": run}
    ready = [run if run and run.is_ready and run.accuracy is not None else None for run in runs]
    more = _compared(sides, ready) if trained else {}
    names = [(name, dataset.pk) for (name, _), dataset in zip(SIDES, datasets, strict=True)]
    return {
        "sides": sides,
        "names": names,
        "trained": trained,
        "live": any(run is not None and run.is_active for run in runs),
        **more,
    }


def _compared(sides: list[dict[str, Any]], runs: list[Run | None]) -> dict[str, Any]:
    """Compare the runs that are ready; add to each side its metrics and its gain over the first.

    The verdict compares real rows with both and waits for no other.
    """
    real, _, both = runs
    for side, run in zip(sides, runs, strict=True):
        if run is not None:
            side |= {"metrics": run.metrics}
            if real is not None:
                side |= {"gain": run.metrics["accuracy"] - real.metrics["accuracy"]}
    if real is None or both is None:
        return {}
    return {
        "compared": True,
        "labels": gains.compare_labels([run.per_class if run else [] for run in runs]),
        "verdict": _verdict(real, both),
    }


def _verdict(real: Run, both: Run) -> str:
    try:
        rows = mcnemar.shared_test_rows(load_run_predictions(real), load_run_predictions(both))
    except NoRowResults as error:
        return f"The significance could not be computed. {error}"
    if not len(rows):
        return "The classifiers were tested on different rows, so they cannot be compared."
    return gains.describe_gain(mcnemar.compare_paired(rows.old_correct, rows.new_correct))


def _last_run(classifier: Classifier) -> Run | None:
    large = [name for name in LARGE_FIELDS if name != "per_class"]
    return classifier.runs.defer(*large).order_by("-number").first()
