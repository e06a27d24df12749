"""The request that begins as those of all rows of a job do."""

from typing import Any

from apps.generation.recipe.parse import parse
from apps.generation.recipe.spec import Spec
from apps.generation.rows.generate_row import shared_request
from apps.generation.rows.row_steps import RowRequest, row_steps
from apps.generation.rows.samplers import RowSeed
from apps.llm.thinking import NOT_REPORTED, ThinkingSupport

THINKS = ThinkingSupport(thinks=True, can_switch=True, can_disable=True)


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def spec_of(**body: Any) -> Spec:
    recipe = parse({"prompt": "Write.", **body})
    return Spec(recipe, 1, recipe.system_message)


def test_it_has_the_system_message_and_the_fields_of_the_first_column() -> None:
    spec = spec_of(system="Be short.", schema=SCHEMA)
    request = shared_request(spec, "qwen", THINKS)
    assert request is not None
    step = next(row_steps(spec.recipe, RowSeed(0, 1)))
    assert isinstance(step, RowRequest)
    assert request.messages[:-1] == list(step.messages[:-1])
    assert request.response_format == step.shared.response_format
    assert request.params["chat_template_kwargs"]["enable_thinking"] is False


def test_rows_without_a_system_message_share_nothing() -> None:
    spec = spec_of()
    assert spec.recipe.system_message == ""
    assert shared_request(spec, "qwen", NOT_REPORTED) is None
