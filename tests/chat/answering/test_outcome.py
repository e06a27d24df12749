"""The counts and times of an answer, however its requests ended, and its row afterwards."""

import pytest
from django.contrib.auth.models import User

from apps.chat.answering import outcome as outcomes
from apps.chat.answering.outcome import Outcome
from apps.chat.models import CallState, Message, Status
from apps.chat.streaming.event_log import AnswerLog
from apps.llm.events import Progress, Usage
from apps.runtime.async_db import in_db
from tests.chat.conftest import told


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(outcomes, "time", clock)
    return clock


def test_nothing_measured_saves_no_numbers() -> None:
    outcome = Outcome()
    assert outcome.usage_fields() == {}
    assert outcome.uncached_tokens == 0
    assert outcome.reasoning_ms() is None
    assert (outcome.status, outcome.error_code) == (Status.INTERRUPTED, "interrupted")


def test_times_count_from_the_request_to_the_first_token(clock: Clock) -> None:
    outcome = Outcome(sent_at=clock.now)
    outcome.start_round(None)
    clock.now += 0.25
    outcome.count_token(is_reasoning=True)
    clock.now += 0.5
    outcome.count_token()
    clock.now += 0.5
    outcome.count_token()
    outcome.progress = Progress(total=40, cached=30, processed=40)
    fields = outcome.usage_fields()
    assert (fields["ttft_ms"], fields["tokens_per_second"]) == (250.0, 2.0)
    assert outcome.reasoning_ms() == 500.0


def test_reasoning_alone_lasts_until_its_last_token(clock: Clock) -> None:
    outcome = Outcome()
    outcome.count_token(is_reasoning=True)
    clock.now += 0.1
    outcome.count_token(is_reasoning=True)
    assert outcome.reasoning_ms() == 100.0


def test_an_answer_that_was_cut_short_has_the_numbers_of_its_beginning(clock: Clock) -> None:
    outcome = Outcome(sent_at=clock.now)
    outcome.start_round(50)
    outcome.count_progress(Progress(total=40, cached=30, processed=40))
    outcome.count_token()
    fields = outcome.usage_fields()
    assert fields["prompt_tokens"] == 40
    assert (fields["cached_tokens"], fields["completion_tokens"]) == (30, 1)
    assert fields["tokens_per_second"] is None  # one token has no speed
    assert outcome.uncached_tokens == 10


def test_text_that_was_sent_again_counts_as_answer_and_not_as_prompt() -> None:
    outcome = Outcome()
    outcome.start_round(50)
    outcome.count_token(is_reasoning=True)
    outcome.count_token()
    outcome.count_token()
    outcome.carry_over()
    assert outcome.tokens == 0
    outcome.usage = Usage(prompt_tokens=42, completion_tokens=5, cached_tokens=42)
    fields = outcome.usage_fields()
    assert fields["prompt_tokens"] == 40  # the two tokens of text, not the reasoning
    assert fields["completion_tokens"] == 8
    assert (fields["cached_tokens"] or 0) <= 40


def test_a_round_that_called_tools_has_no_speed(clock: Clock) -> None:
    outcome = Outcome(sent_at=clock.now, has_called=True)
    outcome.count_progress(Progress(total=10, cached=0, processed=10))
    for _ in range(3):
        clock.now += 1
        outcome.count_token()
    assert outcome.usage_fields()["tokens_per_second"] is None


def test_a_new_round_undoes_the_end_of_the_one_before() -> None:
    outcome = Outcome()
    outcome.end(Status.COMPLETE, "tool_calls")
    assert (outcome.status, outcome.error_code) == (Status.COMPLETE, "")
    outcome.reset_end()
    assert (outcome.status, outcome.error_code) == (Status.INTERRUPTED, "interrupted")
    assert outcome.finish_reason == ""


async def save(answer: int, outcome: Outcome, text: str) -> list[int]:
    log = AnswerLog(answer)
    if text:
        log.add_token(text)
    stopped = await in_db(outcomes.save, answer, log, outcome, None)
    return [call.pk for call in stopped]


def queued(owner: User) -> Message:
    answer = told(owner, "Hello", "", status=Status.QUEUED).active_leaf
    assert answer is not None
    return answer


@pytest.mark.django_db(transaction=True)
async def test_save_writes_text_status_and_numbers(alice: User) -> None:
    answer = await in_db(queued, alice)
    outcome = Outcome(model="caller", max_tokens=7)
    outcome.usage = Usage(prompt_tokens=12, completion_tokens=2, cached_tokens=4)
    outcome.end(Status.COMPLETE, "stop")
    await save(answer.pk, outcome, "Hi\0 there")
    await answer.arefresh_from_db()
    assert (answer.status, answer.finish_reason, answer.model) == ("complete", "stop", "caller")
    assert "\0" not in answer.content
    assert (answer.prompt_tokens, answer.completion_tokens, answer.max_tokens) == (12, 2, 7)
    assert answer.finished is not None


@pytest.mark.django_db(transaction=True)
async def test_times_are_saved_for_a_server_that_reports_no_usage(alice: User) -> None:
    answer = await in_db(queued, alice)
    outcome = Outcome()
    outcome.count_token()
    outcome.end(Status.COMPLETE, "stop")
    await save(answer.pk, outcome, "Hi")
    await answer.arefresh_from_db()
    assert (answer.prompt_tokens, answer.tokens_per_second, answer.usage) == (None, None, None)
    assert answer.ttft_ms is not None
    assert answer.seconds is not None


@pytest.mark.django_db(transaction=True)
async def test_save_never_overwrites_a_finished_answer(alice: User) -> None:
    answer = await in_db(queued, alice)
    await Message.objects.filter(pk=answer.pk).aupdate(status=Status.COMPLETE, content="Whole")
    outcome = Outcome()
    outcome.end(Status.FAILED, code="unreachable", detail="Offline.")
    await save(answer.pk, outcome, "Half")
    await answer.arefresh_from_db()
    assert (answer.status, answer.content, answer.error_code) == ("complete", "Whole", "")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("status", "states"),
    [
        (Status.STOPPED, {"waiting": "stopped", "running": "stopped", "done": "done"}),
        (Status.INTERRUPTED, {"waiting": "waiting", "running": "stopped", "done": "done"}),
    ],
)
async def test_open_calls_end_with_their_answer(
    alice: User, status: Status, states: dict[str, str]
) -> None:
    answer = await in_db(queued, alice)
    for state in states:
        await answer.tool_calls.acreate(round=1, call_id=state, name="kettle", state=state)
    outcome = Outcome(has_called=True)
    outcome.end(status)
    stopped = await save(answer.pk, outcome, "")
    found = {call.call_id: call async for call in answer.tool_calls.all()}
    assert {name: call.state for name, call in found.items()} == states
    assert {call.pk for call in found.values() if call.state == CallState.STOPPED} == set(stopped)
    assert found["running"].was_cut_off


@pytest.mark.parametrize(
    ("max_tokens", "written", "reason", "has_none"),
    [(None, 2, "length", True), (50, 2, "thinking", True), (2, 2, "length", False),
     (None, 8, "length", False), (None, 2, "stop", False)],
)  # fmt: skip
def test_an_answer_has_no_room_where_the_context_ends_it_at_once(
    max_tokens: int | None, written: int, reason: str, has_none: bool
) -> None:
    outcome = Outcome()
    outcome.start_round(max_tokens)
    outcome.end(Status.COMPLETE, reason)
    assert not outcome.has_no_room  # nothing was counted
    outcome.usage = Usage(prompt_tokens=4094, completion_tokens=written, cached_tokens=0)
    assert outcome.has_no_room is has_none
