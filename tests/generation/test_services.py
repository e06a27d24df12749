"""Jobs: created, duplicated, renamed and deleted with what is stored for them."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.batch.errors import WrongState
from apps.batch.models import Batch
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation import services
from apps.generation.job_request import JobRequest
from apps.generation.models import Job, StoredRows
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.servers.models import Server

SEEDED: dict[str, Any] = {
    "columns": [
        {"name": "like", "kind": "seed", "rows": [{"text": "A seed."}]},
        {"name": "text", "kind": "text", "prompt": "Write one like {{ like }}."},
    ]
}


@pytest.fixture
def tests(alice: User) -> Dataset:
    rows = [ExampleRow("A test row.", "a", "test"), ExampleRow("A train row.", "a")]
    return create_dataset(owner=alice, name="Tests", rows=rows, origin="x")


def create(owner: User, server: Server, **values: Any) -> Job:
    version = values.pop("version", None)
    given: dict[str, Any] = {"name": "J", "rows": 3, "seed": 5, "recipe": parse(SEEDED)} | values
    return services.create_job(JobRequest(**given), owner=owner, server=server, version=version)


def test_seed_rows_and_test_rows_are_stored_with_the_job(
    alice: User, server: Server, tests: Dataset
) -> None:
    job = create(alice, server, test_dataset=tests.pk)
    assert job.test_dataset == "Tests"
    seeds = StoredRows.objects.get(pk=job.spec.stored["like"])
    assert (seeds.owner, seeds.count, seeds.rows) == (alice, 1, [{"text": "A seed."}])
    stored = StoredRows.objects.get(pk=job.spec.filters.test_set)
    assert stored.rows == [{"text": "A test row."}]
    assert "A seed." not in str(job.recipe)  # the recipe refers to what is stored


def test_the_spec_is_parsed_once(alice: User, server: Server) -> None:
    job = create(alice, server)
    assert job.spec is job.spec
    assert Job.objects.get(pk=job.pk).spec == job.spec


def test_a_refused_version_leaves_no_job(alice: User, server: Server) -> None:
    def refuse() -> Any:
        raise RecipeError.one("No.")

    with pytest.raises(RecipeError):
        create(alice, server, version=refuse)
    assert not Job.objects.exists()
    assert not Batch.objects.exists()
    assert not StoredRows.objects.exists()


@pytest.mark.parametrize(
    ("values", "large"),
    [
        ({"total": 499}, False),
        ({"total": 500}, True),
        ({"total": 2_000, "goal": 20}, False),
        ({"total": 20, "prompt_tokens": 300_000, "cached_tokens": 290_000}, False),
        ({"total": 20, "prompt_tokens": 150_000, "completion_tokens": 50_000}, True),
    ],
)
def test_a_large_job_has_many_rows_or_tokens(values: dict[str, int], large: bool) -> None:
    assert services.is_large(Batch(**values)) is large


def test_a_duplicate_asks_for_other_rows_in_the_same_way(
    alice: User, server: Server, tests: Dataset
) -> None:
    job = create(
        alice,
        server,
        refill=True,
        near=0.8,
        test_dataset=tests.pk,
        width=2,
        weight=4,
        daily_tokens=999,
        for_dataset=tests,
        for_classifier=17,
    )
    copy = services.duplicate(job)
    assert copy.name == "J (again)"
    batch = copy.batch
    assert (batch.goal, batch.width, batch.weight, batch.daily_tokens) == (3, 2, 4, 999)
    assert (copy.for_dataset, copy.for_classifier, copy.test_dataset) == (tests, 17, "Tests")
    assert copy.spec.filters.near == 0.8
    assert copy.spec.seed != job.spec.seed


def test_a_duplicate_keeps_its_rows_when_the_first_job_and_the_dataset_go(
    alice: User, server: Server, tests: Dataset
) -> None:
    job = create(alice, server, test_dataset=tests.pk)
    tests.delete()
    copy = Job.objects.get(pk=services.duplicate(job).pk)
    services.delete(job)
    keys = {*copy.spec.stored.values(), copy.spec.filters.test_set}
    assert set(StoredRows.objects.values_list("pk", flat=True)) == keys
    test_rows = StoredRows.objects.get(pk=copy.spec.filters.test_set)
    assert test_rows.rows == [{"text": "A test row."}]


def test_a_job_without_its_server_has_no_duplicate(alice: User, server: Server) -> None:
    job = create(alice, server)
    server.delete()
    with pytest.raises(WrongState, match="model server of this job was removed"):
        services.duplicate(Job.objects.get(pk=job.pk))


def test_a_job_and_its_batch_have_one_name(alice: User, server: Server) -> None:
    job = create(alice, server)
    services.rename(job, "Other")
    assert Job.objects.get().name == Batch.objects.get().name == "Other"


def test_delete_leaves_nothing_behind(alice: User, server: Server, tests: Dataset) -> None:
    job = create(alice, server, test_dataset=tests.pk)
    services.delete(job)
    for model in (Job, Batch, StoredRows):
        assert not model.objects.exists()
    assert Dataset.objects.get() == tests
