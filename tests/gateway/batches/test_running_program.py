"""OpenAI's SDK on the whole program as it runs, whose workers are killed meanwhile."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import openai  # noqa: TID251 - a program that asks us
import pytest
from openai.types import Batch  # noqa: TID251

from tests.gateway.batches.sdk_batch import start
from tests.stack import Stack, kill_all
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until

PATIENCE = 180.0
REQUESTS = 100


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("models")
    models = {
        "WORKBENCH_CHAT_MODEL": str(write_tiny_gguf(folder / "chat.gguf")),
        "WORKBENCH_EMBED_MODEL": str(write_tiny_gguf(folder / "embed.gguf", embeddings=True)),
    }
    with Stack(models) as stack:
        stack.wait_for_log("supervisor      chat-model is ready")
        yield stack


@pytest.fixture(scope="module")
def sdk(stack: Stack) -> Iterator[openai.OpenAI]:
    token = stack.manage("create_api_key", "nightly batch").strip()
    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key=token) as sdk:
        yield sdk


def until(sdk: openai.OpenAI, batch_id: str, state: Callable[[Batch], bool]) -> Batch:
    """Return the batch once it is in a state."""
    seen: list[Batch] = []

    def is_there() -> bool:
        seen.append(sdk.batches.retrieve(batch_id))
        return state(seen[-1])

    wait_until(is_there, within=PATIENCE, what="the state of the batch")
    return seen[-1]


def completed(batch: Batch) -> int:
    return batch.request_counts.completed if batch.request_counts else 0


def has_completed(number: int, batch: Batch) -> bool:
    return completed(batch) >= number


def results(sdk: openai.OpenAI, file_id: str | None) -> list[dict[str, object]]:
    assert file_id
    return [json.loads(line) for line in sdk.files.content(file_id).text.splitlines()]


def test_nothing_is_lost_or_doubled_when_workers_are_killed(
    stack: Stack, sdk: openai.OpenAI, tmp_path: Path
) -> None:
    batch_id = start(sdk, tmp_path, REQUESTS)
    for worker, done in (("celery", 5), ("run_pumps", 15), ("run_pumps", 25)):
        until(sdk, batch_id, partial(has_completed, done))
        # Those that were killed last may not have been started again yet.
        wait_until(partial(stack.processes, worker), what=worker)
        kill_all(stack.processes(worker))
    batch = until(sdk, batch_id, lambda batch: batch.status not in ("in_progress", "finalizing"))
    assert (batch.status, completed(batch), batch.error_file_id) == ("completed", REQUESTS, None)
    lines = results(sdk, batch.output_file_id)
    assert [line["custom_id"] for line in lines] == [f"n{number}" for number in range(REQUESTS)]
    assert all(line["response"] and not line["error"] for line in lines)


def test_a_cancelled_batch_keeps_what_is_done(
    stack: Stack, sdk: openai.OpenAI, tmp_path: Path
) -> None:
    batch_id = start(sdk, tmp_path, 2000)
    until(sdk, batch_id, partial(has_completed, 5))
    assert sdk.batches.cancel(batch_id).status == "cancelling"
    batch = until(sdk, batch_id, lambda batch: batch.status != "cancelling")
    assert batch.status == "cancelled"
    done, rest = results(sdk, batch.output_file_id), results(sdk, batch.error_file_id)
    assert len(done) == completed(batch) >= 5
    assert {line["custom_id"] for line in done + rest} == {f"n{number}" for number in range(2000)}
    assert len(done) + len(rest) == 2000
    assert next(iter(sdk.batches.list(limit=1))).id == batch_id
