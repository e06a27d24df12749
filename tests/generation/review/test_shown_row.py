"""A row as people read it."""

from apps.generation.models import Job
from apps.generation.review.shown_row import Score, shown_row
from tests.generation.conftest import item_of


def test_texts_values_and_scores_are_apart(judged: Job) -> None:
    found = shown_row(judged.spec, item_of(judged, 0))
    assert [field.value for field in found.texts] == ["Ein Überschuss."]
    assert [(field.name, field.written) for field in found.values] == [("topic", False)]
    assert found.scores == [Score("quality", "3", 5, too_low=False)]
    assert found.scores[0].share == 0.6
    assert [field.value for field in found.reasons] == ["So."]


def test_a_low_score_is_marked_and_a_missing_one_left_out(judged: Job) -> None:
    assert shown_row(judged.spec, item_of(judged, 1)).scores[0].too_low
    assert shown_row(judged.spec, item_of(judged, 3)).scores == []


def test_a_short_written_value_is_no_text(job: Job) -> None:
    item = item_of(job, 0)
    item.output = {
        "text": "Long enough to be read as a text, with more than sixty letters.",
        "label": "positive",
    }
    found = shown_row(job.spec, item)
    assert [field.name for field in found.texts] == ["text"]
    assert [(field.name, field.written) for field in found.values][:1] == [("label", True)]


def test_a_row_without_fields(job: Job) -> None:
    found = shown_row(job.spec, item_of(job, 5))
    assert (found.texts, found.values, found.scores) == ([], [], [])
