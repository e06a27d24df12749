"""Trying a recipe: a few rows from the model, without a job."""

import json

import pytest

from apps.generation.recipe.parse import parse
from apps.generation.rows.preview import format_json, generate_preview
from apps.llm.client import ChatRequest, Client, Completion
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.servers.models import Server
from apps.servers.services import choose_target

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]
RECIPE = parse({"prompt": "Write about {{ topic }}.", "attributes": {"topic": ["a", "b", "c"]}})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The model repeats its question; the second one has no answer."""
    questions: list[str] = []

    async def complete(
        self: ResumableCompletion, client: Client, request: ChatRequest
    ) -> Completion:
        questions.append(request.messages[-1]["content"])
        text = "" if len(questions) == 2 else questions[-1]
        return Completion(text, "", "stop", Usage(5, 0, 5))

    monkeypatch.setattr(ResumableCompletion, "complete", complete)
    return questions


async def test_the_first_rows_of_the_job(server: Server, asked: list[str]) -> None:
    found = await generate_preview(choose_target(server, "m"), RECIPE, 7)
    assert len(found) == len(asked) == 3
    outputs = [json.loads(one.output_json) for one in found if one.outcome and not one.outcome.code]
    assert len(outputs) == 2
    assert all(output["text"] == f"Write about {output['topic']}." for output in outputs)
    assert all(one.seconds is not None and one.error == "" for one in found)
    again = await generate_preview(choose_target(server, "m"), RECIPE, 7)
    assert sorted(asked[:3]) == sorted(asked[3:])
    assert len(again) == 3


async def test_a_row_that_is_rejected_has_its_reason(server: Server, asked: list[str]) -> None:
    found = await generate_preview(choose_target(server, "m"), RECIPE, 7)
    [rejected] = [one.outcome for one in found if one.outcome and one.outcome.code]
    assert (rejected.code, rejected.reason) == ("empty", "The text is empty.")


async def test_the_number_of_rows(server: Server, asked: list[str]) -> None:
    found = await generate_preview(choose_target(server, "m"), RECIPE, 7, rows=1)
    assert len(found) == len(asked) == 1


def test_output_as_json() -> None:
    assert format_json(None) == ""
    assert format_json({"text": "Zoë"}) == '{\n  "text": "Zoë"\n}'
