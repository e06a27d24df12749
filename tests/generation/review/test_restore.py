"""Rejected: all that was judged is shown, and what a person wants after all is whole."""

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.batch.errors import WrongState
from apps.batch.jobs import job_policies
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.pump.pump import run_pump
from apps.generation.exports import to_dataset
from apps.generation.exports.row_fields import full_row
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.review import restore
from apps.generation.rows.conversations import conversation, messages_of
from apps.generation.services import create_job
from apps.llm.client import ChatRequest, Completion, close_clients
from apps.llm.client import Client as ModelClient
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.generation.conftest import finish

COLUMNS: list[dict[str, Any]] = [
    {"name": "topic", "values": ["printer", "login"]},
    {
        "name": "question",
        "kind": "text",
        "prompt": "Ask about a {{ topic }}.",
        "checks": [{"kind": "lacks", "text": "bad"}],
    },
    {"name": "hint", "kind": "text", "prompt": "A hint.", "keep": False},
    {"name": "answer", "kind": "text", "prompt": "Answer by the hint {{ hint }}."},
    {"name": "judge", "kind": "judge", "criteria": [{"name": "helpful", "at_least": 3}]},
]
JUDGED = '{"judge_reason": "Dull.", "helpful": 2}'
PASSED = '{"judge_reason": "Fine.", "helpful": 5}'
Asked = list[ChatRequest]
Script = Callable[..., Asked]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """The model gives these replies, in order; an answer and its reason to end."""

    def says(*replies: str | tuple[str, str]) -> Asked:
        asked: Asked = []
        left = iter(replies)

        async def complete(
            self: ResumableCompletion, client: ModelClient, request: ChatRequest
        ) -> Completion:
            asked.append(request)
            reply = next(left)
            text, finish = reply if isinstance(reply, tuple) else (reply, "stop")
            return Completion(text, "", finish, Usage(10, 4, 5))

        monkeypatch.setattr(ResumableCompletion, "complete", complete)
        return asked

    return says


@async_to_sync
async def work(server: Server) -> None:
    await run_pump(server.pk)
    await close_clients()
    await close_async_redis()


def job_of(
    alice: User,
    server: Server,
    rows: int = 1,
    refill: bool = False,
    columns: Any = COLUMNS,
    **recipe_parts: Any,
) -> Job:
    recipe = parse({"columns": columns, **recipe_parts})
    return create_job(
        JobRequest(name="T", rows=rows, seed=7, recipe=recipe, refill=refill),
        owner=alice,
        server=server,
    )


def only(job: Job) -> Item:
    return Item.objects.get(batch_id=job.batch_id, index=0)


def restored(job: Job) -> Item:
    item = only(job)
    restore.restore(item, job.spec)
    return item


@pytest.mark.django_db(transaction=True)
class TestThroughThePump:
    def test_a_judged_row_shows_what_was_judged_and_comes_back_whole(
        self, alice: User, browser: Client, server: Server, script: Script
    ) -> None:
        job = job_of(alice, server)
        script("Where is it?", "Look.", "On its way.", JUDGED)
        work(server)
        assert only(job).status == ItemStatus.REJECTED
        for page in ("cards/", "cards/0/", "rows/0/", "review/?status=rejected", "rows/"):
            shown = browser.get(f"/generate/{job.pk}/{page}").content.decode()
            assert "Where is it?" in shown, page
            assert "On its way." in shown, page
            assert "[&quot;" not in shown, page  # no JSON in JSON
        restored(job)
        item = only(job)
        assert (item.status, item.reviewed) == (ItemStatus.ACCEPTED, True)
        assert full_row(job.spec, item) == {
            "topic": item.output["topic"],
            "question": "Where is it?",
            "answer": "On its way.",
            "judge_reason": "Dull.",
            "helpful": 2,
        }

    def test_after_a_column_in_the_middle_the_others_are_written(
        self, alice: User, api: Client, server: Server, script: Script
    ) -> None:
        job = job_of(alice, server)
        script("A bad question?")
        work(server)
        item = only(job)
        assert item.code == "check_lacks"
        topic = item.output["topic"]
        assert item.output == {"topic": topic, "question": "A bad question?"}
        answer = api.post(f"/api/v1/jobs/{job.pk}/rows/0/restore").json()
        assert (answer["status"], answer["output"]["question"]) == ("pending", "A bad question?")
        assert "still to be written" in answer["reason"]
        assert Batch.objects.get().status == BatchStatus.QUEUED
        asked = script("Look.", "On its way.", PASSED)
        work(server)
        said = [message["content"] for message in asked[0].messages]
        assert said == [f"Ask about a {topic}.", "A bad question?", "A hint."]
        assert asked[1].messages[-1]["content"] == "Answer by the hint Look.."
        item = only(job)
        assert item.status == ItemStatus.ACCEPTED
        assert item.output == {
            **{"topic": topic, "question": "A bad question?", "answer": "On its way."},
            **json.loads(PASSED),
        }
        assert item.completion_tokens == 20  # all that was written for it
        assert Batch.objects.get().status == BatchStatus.DONE

    def test_an_answer_that_is_no_row_is_asked_for_once_more(
        self, alice: User, server: Server, script: Script
    ) -> None:
        job = job_of(alice, server)
        first = script("Where is it?", "Look.", "On its way.", ('{"judge_rea', "length"))
        work(server)
        assert only(job).code == "length"
        assert restored(job).status == ItemStatus.PENDING
        again = script(PASSED)
        work(server)
        assert only(job).status == ItemStatus.ACCEPTED
        assert again[0].messages == first[3].messages
        assert again[0].params["seed"] != first[3].params["seed"]  # else it came out the same

    def test_a_second_question_is_shown_and_counts_for_nothing_afterwards(
        self, alice: User, browser: Client, server: Server, script: Script
    ) -> None:
        job = job_of(alice, server)
        script("Where is it?", "Look.", "On its way.", '{"helpful": 4', JUDGED)
        work(server)
        item = only(job)
        assert item.code == "judged"
        page = browser.get(f"/generate/{job.pk}/rows/0/").content.decode()
        assert "That cannot be used. Not valid JSON" in page
        assert "{&quot;helpful&quot;: 4</pre>" in page
        assert restored(job).output["answer"] == "On its way."
        said = [message["content"] for message in conversation(job.spec, only(job))]
        assert said[1::2] == ["Where is it?", "Look.", "On its way."]

    @pytest.mark.parametrize("said", ['{"a": "x"}', '["a", "b"]', "\x1ea"])
    def test_a_recipe_with_one_question(
        self, alice: User, browser: Client, server: Server, script: Script, said: str
    ) -> None:
        schema = {
            "type": "object",
            "required": ["title"],
            "properties": {"title": {"type": "string"}},
        }
        job = job_of(alice, server, columns=None, prompt="Go.", schema=schema)
        script(said, '```json\n{"title": "Good."}\n```')
        work(server)
        item = only(job)
        assert (item.status, item.output) == (ItemStatus.ACCEPTED, {"title": "Good."})
        sent = messages_of(job.spec, item)
        assert [message["content"] for message in sent[1:3]] == ["Go.", said]
        assert [message["content"] for message in conversation(job.spec, item)[1:]] == [
            "Go.",
            '```json\n{"title": "Good."}\n```',
        ]

    def test_checks_hold_for_what_is_written_afterwards(
        self, alice: User, server: Server, script: Script
    ) -> None:
        job = job_of(alice, server)
        script("A bad question?")
        work(server)
        restored(job)
        script("Look.", "On its way.", JUDGED)
        work(server)
        assert only(job).code == "judged"
        assert restored(job).status == ItemStatus.ACCEPTED


@pytest.mark.django_db
class TestRestoring:
    def test_restore_withdraws_a_queued_replacement_and_not_a_running_one(
        self, alice: User, server: Server
    ) -> None:
        job = job_of(alice, server, rows=2, refill=True)
        asked, said = json.dumps(["Ask."]), json.dumps(["A bad question?"])
        for index in (0, 1):
            finish(job, index, ItemStatus.REJECTED, code="check_lacks", prompt=asked, raw=said)
        job_policies.enforce_policies(server.pk)
        assert job.batch.items.count() == 4
        spare = job.batch.items.get(index=2)
        finish(job, 2, ItemStatus.REJECTED, code="check_lacks", prompt=asked, raw=said)
        spare.refresh_from_db()
        restore.restore(spare, job.spec)
        assert restored(job).status == ItemStatus.PENDING
        waiting = job.batch.items.filter(status=ItemStatus.PENDING)
        assert set(waiting.values_list("index", flat=True)) == {0, 2, 3}

    def test_restore_of_an_unfinished_row_is_refused_in_a_cancelled_job(
        self, alice: User, server: Server
    ) -> None:
        job = job_of(alice, server)
        said = json.dumps(["A bad question?"])
        finish(job, 0, ItemStatus.REJECTED, code="check_lacks", prompt='["Ask."]', raw=said)
        Batch.objects.update(status=BatchStatus.CANCELLED)
        with pytest.raises(WrongState, match="was cancelled"):
            restored(job)

    @pytest.mark.parametrize(
        ("code", "raw"),
        [("empty", '[" "]'), ("bad_prompt", '["x"]'), ("length", ""), ("length", "[]")],
    )
    def test_nothing_to_go_on_from(
        self, alice: User, server: Server, browser: Client, code: str, raw: str
    ) -> None:
        job = job_of(alice, server)
        finish(job, 0, ItemStatus.REJECTED, code=code, raw=raw, output={"topic": "login"})
        with pytest.raises(WrongState):
            restored(job)
        assert only(job).status == ItemStatus.REJECTED
        if code != "empty":
            assert (
                "Accept after all" not in browser.get(f"/generate/{job.pk}/cards/").content.decode()
            )

    def test_a_row_of_the_wrong_shape_stays_out_and_one_beyond_a_limit_may_come(
        self, alice: User, server: Server
    ) -> None:
        schema = {
            "type": "object",
            "required": ["title", "stars"],
            "properties": {
                "title": {"type": "string", "maxLength": 5},
                "stars": {"type": "integer"},
            },
        }
        column = {"name": "x", "kind": "structured", "prompt": "Go.", "schema": schema}
        job = job_of(alice, server, rows=3, columns=[column])
        for index, said in enumerate(
            ['{"title": "A"}', '{"title": "A", "stars": "2"}', '{"title": "Too long", "stars": 2}']
        ):
            finish(job, index, ItemStatus.REJECTED, code="schema", raw=said)
        items = list(job.batch.items.order_by("index"))
        for item in items[:2]:
            with pytest.raises(WrongState):
                restore.restore(item, job.spec)
        restore.restore(items[2], job.spec)
        assert items[2].output == {"title": "Too long", "stars": 2}

    def test_rows_from_before_all_was_kept(
        self, alice: User, server: Server, browser: Client
    ) -> None:
        """Of a judged row only the judge's fields were stored; its replies were, all of them."""
        job = job_of(alice, server, rows=2)
        said = json.dumps(["Where is it?", "Look.", "On its way.", JUDGED])
        old = {"raw": said, "prompt": json.dumps(["a"] * 4), "output": json.loads(JUDGED)}
        finish(job, 0, ItemStatus.REJECTED, code="judged", **old)
        finish(job, 1, ItemStatus.ACCEPTED, **old)  # restored then
        cards = browser.get(f"/generate/{job.pk}/cards/?status=all").content.decode()
        assert cards.count("Where is it?") == 2
        restored(job)
        for item in job.batch.items.all():
            row = full_row(job.spec, item)
            assert list(row) == job.spec.recipe.field_names
            assert row["answer"] == "On its way."

    def test_a_duplicate_that_is_wanted_shares_no_fingerprint(
        self, alice: User, server: Server
    ) -> None:
        job = job_of(alice, server, rows=2)
        output = dict.fromkeys(job.spec.recipe.field_names, "Same.")
        finish(job, 0, ItemStatus.REJECTED, code="by_hand", output=output)
        finish(job, 1, ItemStatus.REJECTED, code="by_hand", output=output)
        for item in job.batch.items.order_by("index"):
            restore.restore(item, job.spec)
        prints = list(job.batch.items.order_by("index").values_list("fingerprint", flat=True))
        assert prints[0] is not None
        assert prints[1] is None


@pytest.mark.django_db(transaction=True)
async def test_no_file_and_no_dataset_has_a_row_that_lacks_something(
    async_browser: AsyncClient, alice: User, server: Server
) -> None:
    job = await sync_to_async(job_of)(alice, server, 3)
    whole = {"topic": "login", "question": "Q?", "answer": "A.", **json.loads(PASSED)}
    for index, output in enumerate([json.loads(PASSED), whole, {**whole, "answer": " "}]):
        await sync_to_async(finish)(job, index, ItemStatus.ACCEPTED, output=output, raw="")

    async def file(query: str) -> bytes:
        answer: Any = await async_browser.get(f"/generate/{job.pk}/export/?format={query}")
        return b"".join([part async for part in answer.streaming_content])

    assert len((await file("jsonl")).splitlines()) == 2
    assert len((await file("csv")).splitlines()) == 3
    assert pq.read_table(io.BytesIO(await file("parquet"))).num_rows == 2
    chat = (await file("chat&user=question&assistant=answer")).splitlines()
    assert [json.loads(line)["messages"][1]["content"] for line in chat] == ["A."]
    dataset = await sync_to_async(to_dataset.to_dataset)(
        job=job, name="Made", text_field="question", label_field="topic"
    )
    assert dataset.rows == 2
