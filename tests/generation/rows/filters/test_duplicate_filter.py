"""Rows that repeat a row of the job, a seed row or a test row."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.batch.models import Item, ItemStatus
from apps.generation.job_request import JobRequest
from apps.generation.models import Job, StoredRows
from apps.generation.recipe.parse import parse
from apps.generation.recipe.spec import Filters, Spec
from apps.generation.rows.duplicate_filter import (
    DuplicateFilter,
    filter_for_job,
    stored_table,
    stored_tables,
)
from apps.generation.services import create_job
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.similarity.contamination import TestTextIndex
from tests.generation.conftest import finish

KETTLE = "The kettle boils water in a minute and switches itself off when it is done"
LAMP = "A lamp for the desk that is bright enough to read by and does not get warm"
SEEDED: dict[str, Any] = {
    "columns": [
        {"name": "like", "kind": "seed", "rows": [{"text": LAMP}]},
        {"name": "text", "kind": "text", "prompt": "Write one like {{ like }}."},
    ]
}


def filter_of(near: float | None = 0.8) -> DuplicateFilter:
    recipe = parse({"prompt": "Write."})
    return DuplicateFilter(Spec(recipe, 1, recipe.system_message, {}, Filters(near), 100))


def test_the_first_of_two_similar_rows_is_new() -> None:
    rows = filter_of()
    first = rows.check(4, [KETTLE])
    assert (first.code, first.reason) == ("", "")
    assert first.minhash
    second = rows.check(7, [f"{KETTLE}!"])
    assert second.code == "near_duplicate"
    assert second.reason.startswith("About ")
    assert second.reason.endswith("% similar to row 5.")
    assert second.minhash  # another threshold may bring it back
    assert rows.check(8, [LAMP]).code == ""
    assert [rows.has(index) for index in (4, 7, 8, 999)] == [True, False, True, False]


def test_a_threshold_of_all_finds_exact_repetitions_alone() -> None:
    rows = filter_of(1.0)
    rows.check(0, [KETTLE])
    assert rows.check(1, [f"{KETTLE} very much"]).code == ""
    assert rows.check(2, [KETTLE]).code == "near_duplicate"


@pytest.mark.parametrize("texts", [[], [""], [" ", "\n"]])
def test_a_row_without_text_repeats_nothing(texts: list[str]) -> None:
    rows = filter_of()
    assert rows.check(0, texts) == rows.check(1, texts)
    assert rows.check(1, texts).code == ""


def test_a_seed_row_goes_before_a_row_of_the_job() -> None:
    rows = filter_of()
    rows.check(0, [KETTLE])
    rows.seeds.add(2, KETTLE)
    found = rows.check(1, [KETTLE])
    assert (found.code, found.reason) == ("seed_duplicate", "About 100% similar to seed row 3.")


def test_a_test_row_goes_before_all_and_without_a_threshold() -> None:
    rows = filter_of(None)
    assert rows.check(0, [KETTLE]).code == rows.check(1, [KETTLE]).code == ""
    rows.test_set = TestTextIndex([LAMP, KETTLE])
    found = rows.check(2, [f"I say: {KETTLE}."])
    assert found.code == "contaminated"
    assert found.reason.endswith("with row 2 of the test set.")


@pytest.fixture
def seeded(alice: User, server: Server) -> Job:
    return create_job(
        JobRequest(name="S", rows=6, seed=1, recipe=parse(SEEDED), near=0.8),
        owner=alice,
        server=server,
    )


@pytest.mark.django_db(transaction=True)
class TestOfAJob:
    async def test_a_job_that_compares_nothing_has_no_filter(
        self, alice: User, server: Server
    ) -> None:
        recipe = parse({"prompt": "Write."})
        job = await in_db(
            lambda: create_job(
                JobRequest(name="J", rows=1, seed=1, recipe=recipe), owner=alice, server=server
            )
        )
        assert await filter_for_job(job.batch_id, job.spec, {}) is None

    async def test_filter_knows_seed_rows_and_rows_of_other_processes(self, seeded: Job) -> None:
        """With a signature, edited by hand without one, or not accepted at all."""

        def fill() -> None:
            signature = filter_of().check(0, [KETTLE]).minhash
            finish(seeded, 0, ItemStatus.ACCEPTED, output={"text": KETTLE}, minhash=signature)
            edited = {"text": "Somebody wrote this by hand because it was missing before"}
            finish(seeded, 1, ItemStatus.ACCEPTED, output={"text": "Old"}, edited=edited)
            finish(seeded, 2, ItemStatus.REJECTED, output={"text": "This is not worth keeping"})

        await in_db(fill)
        tables = await in_db(stored_tables, seeded.spec)
        found = await filter_for_job(seeded.batch_id, seeded.spec, tables)
        assert found is not None
        assert [found.has(index) for index in range(3)] == [True, True, False]
        texts = [LAMP, KETTLE, "Somebody wrote this by hand because it was missing before"]
        codes = [found.check(3, [text]).code for text in texts]
        assert codes == ["seed_duplicate", "near_duplicate", "near_duplicate"]
        assert found.check(3, ["This is not worth keeping"]).code == ""

    async def test_filter_is_cached_and_reads_new_rows(self, seeded: Job) -> None:
        first = await filter_for_job(seeded.batch_id, seeded.spec, {})
        await in_db(lambda: finish(seeded, 0, ItemStatus.ACCEPTED, output={"text": KETTLE}))
        again = await filter_for_job(seeded.batch_id, seeded.spec, {})
        assert again is first
        assert again is not None
        assert again.check(1, [KETTLE]).code == "near_duplicate"

    async def test_another_threshold_makes_another_filter(self, seeded: Job) -> None:
        first = await filter_for_job(seeded.batch_id, seeded.spec, {})
        spec = seeded.batch.spec
        spec["filters"]["near"] = 0.6
        again = await filter_for_job(seeded.batch_id, Spec.read(spec), {})
        assert again is not first


@pytest.mark.django_db
def test_stored_rows_are_tables(seeded: Job) -> None:
    [key] = seeded.spec.stored.values()
    assert stored_table(key).texts == stored_tables(seeded.spec)["like"].texts == [LAMP]
    with pytest.raises(StoredRows.DoesNotExist):
        stored_table(key + 1)
    assert Item.objects.filter(batch_id=seeded.batch_id).count() == 6
