"""The retries of a person's failed request, by the cause of the failure."""

import itertools
import time

import pytest

from apps.llm import errors
from apps.servers.models import Server, State
from apps.servers.retry import RetryPolicy


@pytest.fixture
def policy() -> RetryPolicy:
    return RetryPolicy(Server(name="s", state=State.READY))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hours pass between two readings of the clock."""
    clock = itertools.count(time.monotonic(), 7200.0)
    monkeypatch.setattr("apps.servers.retry.time.monotonic", lambda: next(clock))


def test_an_overflow_is_retried_twice_at_once(policy: RetryPolicy) -> None:
    overflow = errors.PoolExhausted("The shared context is full.")
    pauses = [policy.next_pause(overflow, has_begun=True) for _ in range(3)]
    assert [pause and pause.seconds for pause in pauses] == [0.0, 0.0, None]


def test_a_busy_server_names_its_pause(policy: RetryPolicy) -> None:
    pause = policy.next_pause(errors.Busy("Too many requests.", 3.0, "limit"), has_begun=False)
    assert pause is not None
    assert pause.seconds == pytest.approx(3.1)
    assert pause.reason == "Too many requests. Trying again in 4 s…"


def test_pauses_of_a_busy_server_double_without_its_word(policy: RetryPolicy) -> None:
    busy = errors.Busy("Too many requests.", None, "limit")
    pauses = [policy.next_pause(busy, has_begun=False) for _ in range(6)]
    seconds = [round(pause.seconds) for pause in pauses if pause]
    assert seconds == [2, 4, 8, 16, 32]  # the sixth would take longer than a minute
    assert pauses[-1] is None


def test_a_pause_beyond_a_minute_is_a_failure(policy: RetryPolicy) -> None:
    busy = errors.Busy("Come back tomorrow.", 86_400.0, "limit")
    assert policy.next_pause(busy, has_begun=False) is None


def test_a_loading_model_is_asked_again_each_second(policy: RetryPolicy) -> None:
    pause = policy.next_pause(errors.Loading("It loads."), has_begun=False)
    assert pause is not None
    assert (pause.seconds, pause.reason) == (1.0, "")


def test_a_server_that_was_ready_may_be_restarting(policy: RetryPolicy) -> None:
    pause = policy.next_pause(errors.Unreachable("Nobody answers."), has_begun=False)
    assert pause is not None
    assert pause.seconds == 0.5
    assert "Trying again" in pause.reason


def test_a_proxy_gets_one_more_try(policy: RetryPolicy) -> None:
    gone = errors.BackendGone("The server behind the proxy is gone.")
    assert policy.next_pause(gone, has_begun=True) is None
    pause = policy.next_pause(gone, has_begun=False)
    assert pause is not None
    assert (pause.seconds, pause.reason) == (0.5, f"{gone} Trying again…")
    assert policy.next_pause(gone, has_begun=False) is None


def test_a_server_that_was_away_is_not_waited_for() -> None:
    policy = RetryPolicy(Server(name="s", state=State.UNREACHABLE))
    assert policy.next_pause(errors.Unreachable("Nobody answers."), has_begun=False) is None


@pytest.mark.parametrize(
    "error",
    [
        errors.BadAddress("No address."),
        errors.CertificateRefused("Unknown certificate."),
        errors.Unauthorized("The key was rejected."),
        errors.BadRequest("A wrong field."),
    ],
)
def test_what_waiting_does_not_help_fails_at_once(
    policy: RetryPolicy, error: errors.LLMError
) -> None:
    assert policy.next_pause(error, has_begun=False) is None


@pytest.mark.parametrize(
    "error",
    [
        errors.Busy("Too many requests.", 1.0, "limit"),
        errors.Loading("It loads."),
        errors.Unreachable("Nobody answers."),
    ],
)
def test_an_answer_that_has_begun_is_not_repeated(
    policy: RetryPolicy, error: errors.LLMError
) -> None:
    assert policy.next_pause(error, has_begun=True) is None


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "error",
    [
        errors.Busy("Too many requests.", 1.0, "limit"),
        errors.Loading("It loads."),
        errors.Unreachable("Nobody answers."),
    ],
)
def test_retries_end_with_their_time(error: errors.LLMError) -> None:
    policy = RetryPolicy(Server(name="s", state=State.READY))
    assert policy.next_pause(error, has_begun=False) is None
