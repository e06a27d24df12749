"""Tools that a conversation offers: approvals, limits and what a changed definition undoes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.models import MAX_ROUNDS, ToolSettings
from apps.chat.tools import settings as tool_settings
from apps.core import tools
from apps.core.tools import Approval, Tool, parameters
from tests.chat.conftest import told

pytestmark = pytest.mark.django_db

NOBODY = 0
KETTLE = Tool(
    name="kettle",
    title="Kettle",
    description="Boils water.",
    parameters=parameters(cups={"type": "integer"}, before={"type": "string"}),
    run="tests.nowhere",
    source="https://kettle.example",
)


@pytest.fixture(autouse=True)
def _only_some_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "registered", dict(tools.registered))
    tools.register(KETTLE)


def test_nothing_is_offered_by_default() -> None:
    offer = tool_settings.offer(ToolSettings(), NOBODY)
    assert offer.tools == ()
    assert (offer.definitions(), offer.size) == ([], 0)


def test_an_offer_has_the_chosen_tools_and_those_that_ask() -> None:
    chosen = ToolSettings(use={"calculator": "always", "kettle": "ask"}, rounds=3, parallel=False)
    offer = tool_settings.offer(chosen, NOBODY)
    assert [tool.name for tool in offer.tools] == ["calculator", "kettle"]
    assert offer.asks == {"kettle"}
    assert (offer.rounds, offer.parallel) == (3, False)
    assert offer.find("kettle") == KETTLE
    assert offer.find("date_and_time") is None


def test_a_tool_that_is_gone_is_not_offered() -> None:
    offer = tool_settings.offer(ToolSettings(use={"teapot": "always"}), NOBODY)
    assert offer.tools == ()


def test_definitions_are_the_same_bytes_and_keep_the_order_of_properties() -> None:
    definition = tool_settings.definition_of(KETTLE)
    function = definition["function"]
    assert list(function["parameters"]["properties"]) == ["cups", "before"]
    assert list(function["parameters"]) == sorted(function["parameters"])
    shuffled = replace(KETTLE, parameters=dict(reversed(KETTLE.parameters.items())))
    assert json.dumps(tool_settings.definition_of(shuffled)) == json.dumps(definition)


def test_a_changed_definition_that_was_always_allowed_asks_again() -> None:
    allowed = tool_settings.always_allow(ToolSettings(), KETTLE)
    assert tool_settings.approval_of(allowed, KETTLE) == Approval.ALWAYS
    assert (
        tool_settings.approval_of(allowed, replace(KETTLE, source="https://other.example"))
        == Approval.ASK
    )


def test_a_tool_without_a_fingerprint_stays_allowed() -> None:
    plain = replace(KETTLE, source="")
    allowed = tool_settings.always_allow(ToolSettings(), plain)
    assert allowed.allowed == {}
    assert tool_settings.approval_of(allowed, plain) == Approval.ALWAYS


def test_check_stores_no_tool_that_is_off() -> None:
    use = {"calculator": "never", "kettle": "always", "date_and_time": "ask"}
    checked = tool_settings.check(use, 4, True, NOBODY)
    assert checked.use == {"kettle": "always", "date_and_time": "ask"}
    assert checked.allowed == {"kettle": KETTLE.fingerprint}
    assert ToolSettings.from_json(checked.to_json()) == checked
    assert "allowed" not in checked.to_public_json()


@pytest.mark.parametrize(
    ("use", "rounds", "sentence"),
    [
        ({"teapot": "ask"}, 8, "Unknown tool “teapot”"),
        ({"kettle": "sometimes"}, 8, "approval must be always, ask or never"),
        ({}, 0, f"a number from 1 to {MAX_ROUNDS}"),
        ({}, MAX_ROUNDS + 1, f"a number from 1 to {MAX_ROUNDS}"),
    ],
)
def test_check_refuses(use: dict[str, str], rounds: int, sentence: str) -> None:
    with pytest.raises(tool_settings.BadTools, match=sentence):
        tool_settings.check(use, rounds, True, NOBODY)


def test_restrict_offers_just_these_tools_for_one_answer() -> None:
    usual = ToolSettings(use={"calculator": "always", "kettle": "ask"}, rounds=2)
    restricted = tool_settings.restrict(usual, {"kettle": None}, NOBODY)
    assert (restricted.use, restricted.rounds) == ({"kettle": "ask"}, 2)


def test_restrict_takes_the_default_of_a_tool_that_is_off() -> None:
    restricted = tool_settings.restrict(ToolSettings(), {"calculator": None}, NOBODY)
    calculator = tools.registered["calculator"]
    assert restricted.use == {"calculator": calculator.default}


def test_restrict_refuses_an_unknown_tool() -> None:
    with pytest.raises(tool_settings.BadTools, match="Unknown tool “teapot”"):
        tool_settings.restrict(ToolSettings(), {"teapot": None}, NOBODY)


def post(client: Client, conversation: int, **fields: Any) -> Any:
    return client.post(reverse("chat:tools", args=[conversation]), fields)


def test_the_panel_saves_choices(alice: User, browser: Client) -> None:
    conversation = told(alice, "q", "a")
    fields = {"use-kettle": "ask", "use-calculator": "never", "rounds": "5", "parallel": "on"}
    saved = post(browser, conversation.pk, **fields)
    assert saved.status_code == 200
    assert "Saved." in saved.content.decode()
    conversation.refresh_from_db()
    assert conversation.tools == {"use": {"kettle": "ask"}, "rounds": 5}


@pytest.mark.parametrize("rounds", ["", "0", "many", "999999999", "51"])
def test_the_panel_refuses_rounds_out_of_range(alice: User, browser: Client, rounds: str) -> None:
    conversation = told(alice, "q", "a")
    refused = post(browser, conversation.pk, **{"use-kettle": "ask", "rounds": rounds})
    assert refused.status_code == 422
    assert f"a number from 1 to {MAX_ROUNDS}" in refused.content.decode()
    conversation.refresh_from_db()
    assert conversation.tools == {}


def test_a_decision_must_be_known(alice: User, browser: Client) -> None:
    answer = told(alice, "q", "a").active_leaf
    assert answer is not None
    call = answer.tool_calls.create(round=1, call_id="a", name="kettle", state="waiting")
    address = reverse("chat:decide_tool_call", args=[call.pk])
    assert browser.post(address, {"decision": "perhaps"}).status_code == 400
    call.refresh_from_db()
    assert call.state == "waiting"


def test_a_call_with_a_result_is_neither_decided_nor_run_again(
    alice: User, browser: Client
) -> None:
    answer = told(alice, "q", "a").active_leaf
    assert answer is not None
    call = answer.tool_calls.create(
        round=1, call_id="a", name="kettle", state="done", result="Boiled."
    )
    decided = browser.post(reverse("chat:decide_tool_call", args=[call.pk]), {"decision": "run"})
    assert decided.status_code == 422
    assert "no longer waiting" in decided.content.decode()
    again = browser.post(reverse("chat:rerun_tool_call", args=[call.pk]))
    assert again.status_code == 422
    assert "cannot be run again" in again.content.decode()
    shown = browser.get(reverse("chat:tool_call", args=[call.pk])).content.decode()
    assert "Boiled." in shown
