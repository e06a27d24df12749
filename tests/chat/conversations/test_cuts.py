"""The cut on the page: pins, summaries, the meter, and what of them goes into prompts."""

import asyncio

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from apps.chat.answering import summaries
from apps.chat.conversations import branch_view, context_meter
from apps.chat.models import Conversation, Message, Role, Summary, SummaryState
from apps.chat.prompt.context import RECALL
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.chat.conftest import Event, ask_in, events_of, told
from tests.chat.tools.tool_server import ToolServer, create_tool_server
from tests.chat.views.test_pages import page
from tests.markup import visible_text
from tests.waiting import until

SUMMARY = "They spoke of kettles."
TURNS = ("one", "1 said", "two", "2 said", "three", "3 said")


def cut(owner: User, *, before: str = "three") -> Conversation:
    """A conversation whose last answer's prompt began at a message."""
    conversation = told(owner, *TURNS)
    kept = conversation.messages.get(content=before)
    conversation.messages.filter(content="2 said").update(
        prompt_tokens=700, cached_tokens=600, completion_tokens=50
    )
    conversation.messages.filter(content="3 said").update(
        cut_before_message=kept.pk, prompt_tokens=900, cached_tokens=450, completion_tokens=50
    )
    return conversation


def message(conversation: Conversation, content: str) -> Message:
    return conversation.messages.get(content=content)


async def summarised(owner: User, model: ToolServer) -> Conversation:
    await asyncio.to_thread(create_tool_server, model)
    conversation = await in_db(cut, owner)
    upto = await in_db(message, conversation, "2 said")
    summary = await Summary.objects.acreate(upto=upto)
    await summaries.write(summary.pk)
    return conversation


@pytest.mark.django_db(transaction=True)
async def test_a_summary_is_asked_for_with_the_prompt_that_was_cut(alice: User) -> None:
    with ToolServer([[{"content": SUMMARY}]]) as model:
        conversation = await summarised(alice, model)
    said = [(m["role"], m["content"]) for m in model.asked[0]["messages"]]
    assert [content for _, content in said] == [*TURNS[:4], summaries.QUESTION]
    summary = await Summary.objects.aget(upto__conversation=conversation)
    assert (summary.state, summary.text) == (SummaryState.READY, SUMMARY)


@pytest.mark.django_db(transaction=True)
async def test_the_next_prompts_begin_with_it_and_with_what_is_pinned(
    alice: User, alice_api: AsyncClient
) -> None:
    with ToolServer([[{"content": SUMMARY}], [{"content": "4 said"}]]) as model:
        conversation = await summarised(alice, model)
        pinned = await in_db(message, conversation, "1 said")
        await Message.objects.filter(pk=pinned.pk).aupdate(pinned=True)
        events: list[Event] = []
        for question in ("four", "five"):
            answer = await ask_in(alice_api, conversation.pk, question)
            events += await events_of(alice_api, answer)
        contents = [[m["content"] for m in asked["messages"]] for asked in model.asked]
    front = [RECALL, SUMMARY, "one", "1 said", "three", "3 said", "four"]
    assert contents[1] == front
    assert contents[2] == [*front, "4 said", "five"]
    said = await Message.objects.aget(pk=answer)
    summary = await Summary.objects.aget()
    size = sum(map(len, front[:4]))
    assert said.prompt_prefix == {"summary": summary.pk, "pinned": [pinned.pk], "front": size}


@pytest.mark.django_db(transaction=True)
async def test_the_next_question_ends_a_summary_which_is_then_asked_for_again(
    alice: User, alice_api: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "RETRY_SECONDS", 0.01)
    script = [[{"content": SUMMARY}], [{"content": "4 said"}], [{"content": SUMMARY}]]
    with ToolServer(script, hang_at=1) as model:
        writing = asyncio.create_task(summarised(alice, model))
        await until(lambda: model.asked)
        conversation = await Conversation.objects.aget()
        await events_of(alice_api, await ask_in(alice_api, conversation.pk, "four"))
        await writing
        assert [asked["messages"][-1]["content"] for asked in model.asked[:3]] == [
            summaries.QUESTION, "four", summaries.QUESTION
        ]  # fmt: skip
    assert (await Summary.objects.aget()).state == SummaryState.READY


@pytest.mark.django_db(transaction=True)
async def test_summary_waits_for_an_idle_slot_and_reports_when_none_is(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "MAX_WAIT", summaries.timedelta(seconds=0.1))
    with ToolServer([[{"content": "no"}]], hang=True) as model:
        conversation = await summarised(alice, model)
    summary = await Summary.objects.aget(upto__conversation=conversation)
    assert (summary.state, summary.text) == (SummaryState.FAILED, summaries.NO_SLOT)


@pytest.mark.django_db
class TestPage:
    def test_each_state_of_a_summary(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = cut(alice)
        assert "Summarise earlier messages" in page(browser, conversation)
        summary = Summary.objects.create(upto=message(conversation, "2 said"))
        assert "when a slot is free" in page(browser, conversation)
        address = reverse("chat:summary", args=[conversation.pk])
        for state, shown in (
            (SummaryState.FAILED, "Summary failed: Why."),
            (SummaryState.READY, "Summary sent instead"),
        ):
            summary.state, summary.text = state, "Why."
            summary.save()
            html = browser.get(address).content.decode()
            assert shown in html
            assert "every 1s" not in html
        assert "Summarise earlier messages" in browser.delete(address).content.decode()
        assert not Summary.objects.exists()

    def test_one_whose_writer_is_gone(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = cut(alice)
        long_ago = summaries.timezone.now() - summaries.timedelta(hours=1)
        Summary.objects.create(upto=message(conversation, "2 said"), created=long_ago)
        html = browser.get(reverse("chat:summary", args=[conversation.pk])).content.decode()
        assert summaries.INTERRUPTED in html

    def test_a_summary_of_an_earlier_cut_is_said_to_be_sent(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = cut(alice)
        upto = message(conversation, "1 said")
        Summary.objects.create(upto=upto, state=SummaryState.READY, text="x")
        html = page(browser, conversation)
        assert "An older summary is still sent." in html
        assert "Summarise earlier messages" in html

    def test_pins(self, alice: User, browser: Client, demo_server: Server) -> None:
        conversation = cut(alice)
        pinned = message(conversation, "1 said")
        address = reverse("chat:pin_message", args=[pinned.pk])
        assert 'aria-pressed="true"' in browser.post(address).content.decode()
        assert "except 1 pinned" in page(browser, conversation)
        conversation.messages.filter(content="3 said").update(prompt_prefix={"pinned": []})
        assert "1 pinned message did not fit" in visible_text(page(browser, conversation))
        assert 'aria-pressed="false"' in browser.post(address).content.decode()

    def test_of_nobody_elses_and_by_the_right_verbs(
        self, alice: User, browser: Client, bobs_browser: Client, demo_server: Server
    ) -> None:
        conversation = cut(alice)
        pin = reverse("chat:pin_message", args=[conversation.active_leaf_id])
        summary = reverse("chat:summary", args=[conversation.pk])
        assert bobs_browser.post(pin).status_code == 404
        assert bobs_browser.post(summary).status_code == 404
        assert browser.get(pin).status_code == 405
        assert browser.put(summary).status_code == 405

    def test_an_answer_whose_prompt_was_cut_brings_the_thread(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = cut(alice)
        answer = reverse("chat:answer", args=[conversation.active_leaf_id])
        response = browser.get(answer)
        assert response["HX-Retarget"] == "#thread"
        assert "Summarise earlier messages" in response.content.decode()
        kept = message(conversation, "three")
        conversation.messages.filter(content="2 said").update(cut_before_message=kept.pk)
        response = browser.get(answer)
        assert "HX-Retarget" not in response
        assert "meter-turns" in response.content.decode()

    def test_the_meter(self, alice: User, browser: Client, demo_server: Server) -> None:
        html = page(browser, cut(alice))
        assert (
            "950 of 2,048 tokens used. At 1,740 tokens, the oldest messages are dropped"
            in visible_text(html)
        )
        assert "about 3 more turns at this rate" in html
        assert "66% of all prompt tokens" in html
        assert 'id="meter-turns"' not in page(browser, told(alice, "Hello", "Hi"))


def test_turns_left_are_estimated_until_a_cut() -> None:
    def turn(number: int, tokens: int) -> context_meter.AnswerUsage:
        return context_meter.AnswerUsage(number, number, tokens, 0, 0, None, 0)

    steady = [turn(number, 100 * number) for number in range(1, 11)]
    assert context_meter.ContextMeter(steady, 2000).turns_left == 7  # 1,000 now, 1,700 is the limit
    assert context_meter.ContextMeter(steady, None).turns_left is None
    assert context_meter.ContextMeter(steady[:1], 2000).turns_left is None
    after_a_cut = [turn(1, 1500), turn(2, 700), turn(3, 800)]
    assert context_meter.ContextMeter(after_a_cut, 2000).turns_left == 9
    assert context_meter.ContextMeter([turn(1, 1600), turn(2, 1699)], 2000).turns_left == 0


@pytest.mark.django_db
def test_only_the_branch_that_is_shown_is_measured(alice: User) -> None:
    conversation = cut(alice)
    Message.objects.create(
        conversation=conversation, parent=message(conversation, "three"), role=Role.ASSISTANT,
        content="other", prompt_tokens=5000,
    )  # fmt: skip
    turns = context_meter.measure(branch_view.Branch.active(conversation))
    assert [turn.prompt for turn in turns] == [700, 900]


class TestOverHttp:
    def test_pins(self, alice: User, api: Client, bobs_api: Client) -> None:
        said = message(cut(alice), "1 said")
        address = f"/api/v1/messages/{said.pk}/pin"
        assert bobs_api.post(address).status_code == 404
        assert api.get(address).status_code == 405
        assert api.post(address).json() == {"id": said.pk, "pinned": True}
        said.refresh_from_db()
        assert said.pinned
        assert api.delete(address).json() == {"id": said.pk, "pinned": False}

    def test_summaries(
        self, alice: User, api: Client, bobs_api: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(summaries, "start", lambda _: None)
        monkeypatch.setattr(summaries, "write", _unwritten)
        conversation = cut(alice)
        address = f"/api/v1/conversations/{conversation.pk}/summary"
        assert bobs_api.get(address).status_code == bobs_api.post(address).status_code == 404
        assert api.put(address).status_code == 405
        upto = message(conversation, "2 said")
        shown = api.get(address).json()
        assert (shown["upto"], shown["messages"], shown["summary"]) == (upto.pk, 4, None)
        assert api.delete(address).status_code == 404
        begun = api.post(address)
        assert (begun.status_code, begun.json()["summary"]["state"]) == (202, "running")
        assert api.post(address).json()["code"] == "still_summarising"
        assert api.delete(address).status_code == 204
        assert not Summary.objects.exists()
        whole = told(alice, "Hello", "Hi")
        assert api.get(f"/api/v1/conversations/{whole.pk}/summary").status_code == 404

    def test_titles(self, alice: User, api: Client, bobs_api: Client) -> None:
        address = f"/api/v1/conversations/{told(alice, 'Hello', 'Hi').pk}/title"
        assert api.get(address).json() == {"title": "Kettles", "may_come": False}
        assert bobs_api.get(address).status_code == 404
        assert api.post(address).status_code == 405


async def _unwritten(pk: int) -> None:
    """A model that takes its time."""
