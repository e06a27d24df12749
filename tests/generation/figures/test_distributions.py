"""Scores and shares of a job's rows."""

from apps.generation.figures.distributions import Bar, column_shares, score_histograms
from apps.generation.models import Job
from apps.generation.review.similar_rows import sample_rows
from tests.generation.conftest import set_fingerprints


def test_scores_of_all_judged_rows(judged: Job) -> None:
    [found] = score_histograms(judged)
    assert (found.name, found.at_least, found.rows) == ("quality", 2, 3)
    assert [bar.rows for bar in found.bars] == [1, 0, 1, 0, 1]
    assert [bar.length for bar in found.bars] == [1, 0, 1, 0, 1]


def test_shares_of_the_values_of_a_column(judged: Job) -> None:
    set_fingerprints(judged)
    [found] = column_shares(judged, sample_rows(judged))
    assert (found.name, found.total, found.others) == ("topic", 4, 0)
    assert found.bars == [Bar("billing", 2, 1.0), Bar("crash", 2, 1.0)]


def test_a_value_that_never_came_is_shown(judged: Job) -> None:
    [found] = column_shares(judged, sample_rows(judged))  # none has a fingerprint
    assert found.bars == [Bar("billing", 0, 0.0), Bar("crash", 0, 0.0)]


def test_a_recipe_without_judge_and_column(job: Job) -> None:
    job.batch.spec["recipe"] = {"prompt": "Hello"}
    assert score_histograms(job) == []
    assert column_shares(job, sample_rows(job)) == []
