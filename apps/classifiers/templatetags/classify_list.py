"""{% classify_list %} and its parts: the classifiers and datasets of Classify."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.db.models import OuterRef, Subquery
from django.template.context import RequestContext

from apps.classifiers.models import ACTIVE, LARGE_FIELDS, Classifier, Run, Status
from apps.datasets.models import Dataset

register = template.Library()

SHOWN = 200  # of each kind, the newest


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of the list: its name, a line about it, and its state as a mark."""

    pk: int
    name: str
    line: str
    state: str = ""
    """live, training, failed or empty."""


@register.inclusion_tag("classifiers/_list.html", takes_context=True)
def classify_list(context: RequestContext) -> dict[str, Any]:
    user = context["request"].user
    classifier, dataset = context.get("classifier"), context.get("dataset")
    classifiers = [_classifier_row(one) for one in _classifiers(user)]
    return {
        "classifiers": classifiers,
        "trains": any(row.state == "training" for row in classifiers),
        "datasets": [_dataset_row(one) for one in _datasets(user)],
        "classifier_pk": classifier.pk if isinstance(classifier, Classifier) else None,
        "dataset_pk": dataset.pk if isinstance(dataset, Dataset) else None,
    }


@register.inclusion_tag("classifiers/_list_rows.html", takes_context=True)
def classify_list_rows(context: RequestContext) -> dict[str, Any]:
    """The rows alone: they come again while something trains."""
    return classify_list(context)


@register.inclusion_tag("classifiers/_start_page.html", takes_context=True)
def classify_list_body(context: RequestContext) -> dict[str, Any]:
    """The same rows in the start page: on a phone nothing is beside it."""
    return classify_list(context)


def _classifiers(user: Any) -> Any:
    newest = Run.objects.filter(classifier=OuterRef("pk")).order_by("-number")
    return (
        Classifier.objects.owned_by(user)
        .select_related("current")
        .annotate(status=Subquery(newest.values("status")[:1]))
        .defer(*(f"current__{name}" for name in LARGE_FIELDS))[:SHOWN]
    )


def _datasets(user: Any) -> Any:
    return Dataset.objects.owned_by(user).defer("report", "notes", "split_counts")[:SHOWN]


def _classifier_row(one: Any) -> ListRow:
    live: Run | None = one.current
    if one.status in ACTIVE:
        return ListRow(one.pk, one.name, "Training", "training")
    if live is None:
        failed = one.status == Status.FAILED
        line = "Training failed" if failed else "Not trained"
        return ListRow(one.pk, one.name, line, "failed" if failed else "")
    labels = live.fit.get("labels")
    parts = [f"{live.accuracy:.1%}" if live.accuracy is not None else "", "live"]
    parts.insert(1, f"{labels:,} labels" if labels else "")
    return ListRow(one.pk, one.name, " · ".join(filter(None, parts)), "live")


def _dataset_row(one: Dataset) -> ListRow:
    labels = len([label for label in one.label_counts if label])
    what = f"{labels:,} label{'' if labels == 1 else 's'}" if labels else "unlabelled"
    return ListRow(one.pk, one.name, f"{one.rows:,} row{'' if one.rows == 1 else 's'} · {what}")
