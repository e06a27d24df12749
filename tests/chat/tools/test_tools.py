"""The parts of tools: what a conversation offers, the calculator, the prompt, the built-in ones."""

import json
from collections.abc import Iterator

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import services
from apps.chat.models import ToolCall, ToolSettings
from apps.chat.prompt import branch, context
from apps.chat.prompt.messages import CountedPrompt, PromptCall, PromptMessage
from apps.chat.tools import arithmetic, builtin
from apps.chat.tools import settings as tool_settings
from apps.chat.tools.arguments import truncate
from apps.chat.tools.call_pieces import CallAssembler
from apps.chat.tools.settings import BadTools
from apps.core import tools
from apps.core.tools import Tool, ToolError, parameters
from apps.llm.client import ChatRequest, Message
from apps.servers.models import Server
from apps.servers.services import choose_target, refresh_server
from tests.chat.conftest import told
from tests.conftest import NOBODY, create_server
from tests.cpu_time import bounded_cpu
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import TOOL_TEMPLATE, write_tiny_gguf


class TestTheCalculator:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("1 + 1", "2"), ("2 * (3 + sqrt(16))", "14"), ("2 ^ 10", "1024"), ("2**-1", "0.5"),
            ("0.1 + 0.2", "0.3"), ("7 // 2", "3"), ("7 % 4", "3"), ("-3 + +2", "-1"),
            ("round(2.567, 1)", "2.6"), ("max(1, 2, 3)", "3"), ("factorial(9)", "362880"),
            ("1e300 * 10", "1e+301"), ("log(e)", "1"), (" 3 ", "3"),
        ],
    )  # fmt: skip
    def test_calculates_an_expression(self, expression: str, value: str) -> None:
        assert arithmetic.calculate(expression) == value

    @pytest.mark.parametrize(
        "expression",
        [
            "", "1 +", "1 / 0", "9**9**9", "(9**999)**999", "factorial(10**9)", "factorial(1.5)",
            "2**(10**9)", "10**1000 * 10**1000", "'a' * 10**9", "[1] * 10**9", "().__class__",
            "__import__('os')", "open('/etc/passwd')", "(lambda: 1)()", "x", "1 if 1 else 2; 3",
            "sqrt(-1)", "1e308 * 1e308 * 0 if 0 else 'a'", "round(1, 10**9)",
            "((" * 200 + "))" * 200,
            "1+" * 400 + "1", "exp(10**5)", "True + 1",
        ],
    )  # fmt: skip
    def test_what_it_refuses(self, expression: str) -> None:
        with bounded_cpu():
            with pytest.raises(arithmetic.BadExpression) as error:
                arithmetic.calculate(expression)
            assert str(error.value)


@pytest.mark.django_db
class TestWhatIsOffered:
    def test_nothing_by_default(self) -> None:
        offer = tool_settings.offer(ToolSettings(), NOBODY)
        assert (offer.tools, offer.definitions(), offer.size) == ((), [], 0)

    def test_the_same_tools_are_the_same_bytes(self) -> None:
        one = tool_settings.offer(
            ToolSettings({"calculator": "ask", "date_and_time": "always"}), NOBODY
        )
        two = tool_settings.offer(
            ToolSettings({"date_and_time": "always", "calculator": "always"}), NOBODY
        )
        assert json.dumps(one.definitions()) == json.dumps(two.definitions())
        assert one.asks == {"calculator"}
        assert two.asks == frozenset()

    def test_keys_are_sorted_and_properties_keep_their_order(self) -> None:
        schema = parameters(zebra={"type": "string", "description": "A"}, apple={"type": "integer"})
        tool = Tool("x", "X", "Does x.", schema, "nowhere")
        sent = json.dumps(tool_settings.definition_of(tool)["function"]["parameters"])
        assert sent.index('"zebra"') < sent.index('"apple"')
        assert sent.index('"description"') < sent.index('"type": "string"')

    def test_stored_settings_leave_out_defaults(self) -> None:
        use = {"date_and_time": "always", "calculator": "never"}
        stored = tool_settings.check(use, rounds=8, parallel=True, person=NOBODY)
        assert stored.to_json() == {"use": {"date_and_time": "always"}}
        stored = tool_settings.check({}, rounds=3, parallel=False, person=NOBODY)
        assert stored.to_json() == {"rounds": 3, "parallel": False}

    @pytest.mark.parametrize(
        ("use", "rounds"),
        [({"nothing": "always"}, 8), ({"calculator": "sometimes"}, 8), ({}, 0), ({}, 51)],
    )
    def test_bad_settings(self, use: dict[str, str], rounds: int) -> None:
        with pytest.raises(BadTools):
            tool_settings.check(use, rounds=rounds, parallel=True, person=NOBODY)

    def test_one_answer_does_not_run_unasked_what_asks(self) -> None:
        settings = ToolSettings({"calculator": "ask"})
        restricted = tool_settings.restrict(settings, {"calculator": None}, NOBODY)
        assert restricted.use == {"calculator": "ask"}
        use = {"start_generation_job": None}
        assert tool_settings.restrict(ToolSettings(), use, NOBODY).use == {
            "start_generation_job": "ask"
        }

    def test_fetching_is_there_only_where_staff_allow_it(self, settings: object) -> None:
        assert "fetch_url" not in {tool.name for tool in tools.available(NOBODY)}
        settings.FETCH_URLS = True  # type: ignore[attr-defined]
        (fetch,) = [tool for tool in tools.available(NOBODY) if tool.name == "fetch_url"]
        assert fetch.needs_approval


class TestGathering:
    def test_pieces_of_two_calls(self) -> None:
        gathered = CallAssembler()
        for delta in (
            {"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}},
            {"index": 0, "function": {"arguments": '{"x"'}},
            {"index": 1, "id": "b", "function": {"name": "sub", "arguments": "{}"}},
            {"index": 0, "function": {"arguments": ": 1}"}},
        ):
            gathered.add(delta)
        assert gathered.take(1) == [
            PromptCall("a", "add", '{"x": 1}'),
            PromptCall("b", "sub", "{}"),
        ]
        assert not gathered

    def test_a_proxy_that_counts_wrong_and_one_that_names_nothing(self) -> None:
        gathered = CallAssembler()
        gathered.add({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})
        gathered.add({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{"}})
        gathered.add({"function": {"arguments": "}"}})
        assert [call.arguments for call in gathered.take(1)] == ["{}", "{}"]
        gathered.add({"index": 0, "function": {"name": "f\0", "arguments": {"x": 1}}})
        assert gathered.take(2) == [PromptCall("call_2_1", "f\ufffd", '{"x": 1}')]


class TestThePrompt:
    CALLED = PromptMessage(-1, "assistant", "", "Hm", calls=(PromptCall("a", "f", '{"x":  1}'),))
    RESULT = PromptMessage(-1, "tool", "42", call_id="a")

    def test_calls_go_back_byte_by_byte(self) -> None:
        turns = [PromptMessage(1, "user", "Q"), self.CALLED, self.RESULT]
        prompt = context.build_prompt(None, turns, context=None)
        assert prompt.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"x":  1}'
        assert prompt.messages[1]["reasoning_content"] == "Hm"  # of the answer in hand
        later = [
            *turns,
            PromptMessage(2, "assistant", "It is 42."),
            PromptMessage(3, "user", "Sure?"),
        ]
        again = context.build_prompt(None, later, context=None).messages
        assert [message["role"] for message in again] == [
            *("user", "assistant", "tool", "assistant", "user")
        ]
        assert "reasoning_content" not in again[1]

    def test_an_answer_that_stopped_after_its_calls_keeps_the_roles_in_turn(self) -> None:
        turns = [
            *(PromptMessage(1, "user", "Q"), self.CALLED, self.RESULT),
            *(PromptMessage(2, "assistant", ""), PromptMessage(3, "user", "And?")),
        ]
        messages = context.build_prompt(None, turns, context=None).messages
        assert messages[3] == {"role": "assistant", "content": ""}
        without = context.build_prompt(None, turns, context=None, with_tools=False).messages
        assert [message["content"] for message in without] == ["Q\n\nAnd?"]

    def test_definitions_and_results_count(self) -> None:
        turns = [PromptMessage(1, "user", "Q"), self.CALLED, self.RESULT]
        bare = context.build_prompt(None, turns, context=None).tokens
        assert (
            context.build_prompt(None, turns, context=None, definitions=3000).tokens == bare + 1000
        )
        long = [*turns[:2], PromptMessage(-1, "tool", "x" * 3000, call_id="a")]
        assert context.build_prompt(None, long, context=None).tokens > bare + 900
        counted = CountedPrompt(100, -1)
        assert context.build_prompt(None, turns, context=None, counted=counted).tokens > 100

    def test_a_cut_never_parts_a_call_from_its_result(self) -> None:
        turns = []
        for n in range(1, 20):
            turns += [
                PromptMessage(10 * n, "user", "Q" * 200),
                PromptMessage(-n, "assistant", "", calls=(PromptCall(f"c{n}", "f", "{}"),)),
                PromptMessage(-n, "tool", "R" * 200, call_id=f"c{n}"),
                PromptMessage(10 * n + 1, "assistant", "A" * 200),
            ]
        prompt = context.build_prompt(None, [*turns, PromptMessage(999, "user", "Q")], context=1000)
        assert prompt.cut_before_message is not None
        assert prompt.messages[0]["role"] == "user"
        called = [m["tool_calls"][0]["id"] for m in prompt.messages if "tool_calls" in m]
        assert called == [m["tool_call_id"] for m in prompt.messages if m["role"] == "tool"]


class TestParts:
    def test_text_is_taken_apart_where_calls_were(self) -> None:
        calls = [
            ToolCall(pk=1, round=1, call_id="a", text_to=3, reasoning_to=0),
            ToolCall(pk=2, round=1, call_id="b", text_to=3, reasoning_to=0),
            ToolCall(pk=3, round=2, call_id="c", text_to=8, reasoning_to=2),
        ]
        first, second, last = branch.split_at_calls("One\n\nTwo\n\nThree", "Hm\n\nAh", calls)
        assert [part.text for part in (first, second, last)] == ["One", "Two", "Three"]
        assert [part.reasoning for part in (first, second, last)] == ["", "Hm", "Ah"]
        assert [len(part.calls) for part in (first, second, last)] == [2, 1, 0]

    def test_blank_lines_of_the_model_stay(self) -> None:
        calls = [ToolCall(pk=1, round=1, text_to=1), ToolCall(pk=2, round=2, text_to=3)]
        assert [part.text for part in branch.split_at_calls("A\n\n\n\n\n\nB", "", calls)] == [
            *("A", "", "\n\nB")
        ]
        assert [part.text for part in branch.split_at_calls("Just text", "", [])] == ["Just text"]


def test_a_long_text_is_cut() -> None:
    assert truncate("abc", 3) == "abc"
    assert truncate("a" * 2000, 1000).endswith("the first 1,000 of 2,000 characters are shown.]")


@pytest.mark.django_db(transaction=True)
class TestTheBuiltInOnes:
    async def test_calculator(self, alice: User) -> None:
        assert await builtin.calculator(alice, {"expression": "6*7"}) == "42"
        with pytest.raises(ToolError, match="Division by zero"):
            await builtin.calculator(alice, {"expression": "1/0"})

    async def test_date_and_time(self, alice: User) -> None:
        assert (await builtin.date_and_time(alice, {})).endswith(" UTC")
        assert "Europe/Berlin" in await builtin.date_and_time(alice, {"time_zone": "Europe/Berlin"})
        for wrong in ("Nowhere/City", "../../etc/passwd", "/etc/passwd"):
            with pytest.raises(ToolError, match="Unknown time zone"):
                await builtin.date_and_time(alice, {"time_zone": wrong})

    async def test_conversations_are_ones_own(self, alice: User, bob: User) -> None:
        await sync_to_async(told)(alice, "How do kettles whistle?", "With steam.")
        assert "kettles" in await builtin.search_conversations(alice, {"words": "kettles"})
        nothing = await builtin.search_conversations(bob, {"words": "kettles"})
        assert nothing.startswith("Nothing was found")


class TestThePanel:
    def test_panel_saves_the_choice_of_tools(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = services.open_conversation(owner=alice)
        panel = browser.get(reverse("chat:settings", args=[conversation.pk])).content.decode()
        assert "Calculator" in panel
        address = reverse("chat:tools", args=[conversation.pk])
        saved = browser.post(
            address,
            {"use-calculator": "always", "use-classify_text": "never", "rounds": "5"},
        )
        assert (saved.status_code, "Saved." in saved.content.decode()) == (200, True)
        conversation.refresh_from_db()
        assert conversation.tools == {
            "use": {"calculator": "always"}, "rounds": 5, "parallel": False,
        }  # fmt: skip

    @pytest.mark.parametrize("given", [{"rounds": "0"}, {"rounds": "x"}, {"use-x": "always"}])
    def test_tools_form_refuses_bad_input_and_saves_nothing(
        self, alice: User, browser: Client, demo_server: Server, given: dict[str, str]
    ) -> None:
        conversation = services.open_conversation(owner=alice)
        refused = browser.post(
            reverse("chat:tools", args=[conversation.pk]), {"rounds": "8", **given}
        )
        assert (refused.status_code, "Not saved" in refused.content.decode()) == (422, True)
        conversation.refresh_from_db()
        assert conversation.tools == {}

    def test_a_model_without_tools_is_said(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        demo_server.stored_facts["models"][0]["abilities"] = {"tools": False}
        demo_server.save()
        conversation = services.open_conversation(owner=alice)
        panel = browser.get(reverse("chat:settings", args=[conversation.pk])).content.decode()
        assert "does not support tools, so none are sent" in panel


class TestACard:
    def card(self, alice: User, browser: Client, **call: str) -> str:
        conversation = told(alice, "Hello", "Before it.\n\nAfter it.")
        answer = conversation.active_leaf
        assert answer is not None
        made = answer.tool_calls.create(round=1, call_id="a", name="calculator", text_to=10, **call)
        page = browser.get(reverse("chat:conversation", args=[conversation.pk])).content.decode()
        assert page.index("Before it.") < page.index(f'id="call-{made.pk}"')
        assert page.index(f'id="call-{made.pk}"') < page.index("After it.")
        return browser.get(reverse("chat:tool_call", args=[made.pk])).content.decode()

    def test_card_shows_arguments_and_escaped_result(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        card = self.card(
            alice, browser, arguments='{"expression": "1+1"}', state="done", result="2 <b>"
        )
        assert "Calculator" in card
        assert "2 &lt;b&gt;" in card
        assert "Run it" not in card

    def test_what_a_model_wrote_is_text(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        card = self.card(alice, browser, arguments="<script>alert(1)</script>", state="failed")
        assert "<script>" not in card

    def test_nothing_waits_in_an_answer_that_has_ended(
        self, alice: User, browser: Client, demo_server: Server
    ) -> None:
        conversation = told(alice, "Hello", "Hi")
        answer = conversation.active_leaf
        assert answer is not None
        call = answer.tool_calls.create(
            round=1, call_id="a", name="calculator", arguments="{}", state="waiting"
        )
        junk = browser.post(
            reverse("chat:decide_tool_call", args=[call.pk]), {"decision": "perhaps"}
        )
        assert junk.status_code == 400
        refused = browser.post(
            reverse("chat:decide_tool_call", args=[call.pk]), {"decision": "run"}
        )
        assert refused.status_code == 422
        assert "no longer waiting" in refused.content.decode()


@pytest.fixture(scope="module")
def llama_with_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaProcess]:
    """A real llama.cpp whose chat template knows tools."""
    path = tmp_path_factory.mktemp("tools") / "tools.gguf"
    with LlamaProcess(
        write_tiny_gguf(path, template=TOOL_TEMPLATE), parallel=1, context_per_slot=4096
    ) as process:
        yield process


@pytest.mark.django_db(transaction=True)
class TestARealServer:
    """What llama.cpp does with definitions, calls and results. Its tiny model calls nothing."""

    async def test_a_round_extends_the_prefix_it_has_read(
        self, llama_with_tools: LlamaProcess
    ) -> None:
        created = await sync_to_async(create_server)(llama_with_tools, "Tools")
        chosen = choose_target(await refresh_server(created))
        facts = chosen.server.model(chosen.model)
        assert facts is not None
        assert facts.abilities["tools"] is True
        use = {"calculator": "always", "date_and_time": "ask"}
        offer = await sync_to_async(tool_settings.offer)(ToolSettings(use), NOBODY)
        turns = [PromptMessage(1, "user", "6 * 7?"), TestThePrompt.CALLED, TestThePrompt.RESULT]
        usages = []
        for said, choice in ((turns[:1], ""), (turns, ""), (turns, "none")):
            messages = context.build_prompt("Be brief.", said, context=None).messages
            request = ChatRequest(
                chosen.model, messages, 4, tools=offer.definitions(), tool_choice=choice,
                parallel_tool_calls=True,
            )  # fmt: skip
            usages.append((await chosen.client.complete(request)).usage)
        question, result, last = usages
        assert question.prompt_tokens > offer.size * 0.8  # a byte is a token of this model
        # All of the question's prompt was there: the rounds after it are read for what is new.
        assert result.cached_tokens >= question.prompt_tokens - len("<assistant>")
        # "none", after the last round, leaves the definitions where they are.
        assert last.prompt_tokens == result.prompt_tokens
        assert last.cached_tokens >= last.prompt_tokens - 1

    async def test_arguments_that_are_no_json_do_not_end_the_conversation(
        self, llama_with_tools: LlamaProcess
    ) -> None:
        created = await sync_to_async(create_server)(llama_with_tools, "Tools")
        chosen = choose_target(await refresh_server(created))
        wrong = ("", "{not json", "[1]", '{"x": NaN}', '{"x": "\\ud800"}', "[" * 1200)
        calls = tuple(PromptCall(f"c{n}", "f", text) for n, text in enumerate(wrong))
        turns = [
            PromptMessage(1, "user", "Q"), PromptMessage(-1, "assistant", "", calls=calls),
            *(PromptMessage(-1, "tool", "Not valid JSON.", call_id=call.id) for call in calls),
        ]  # fmt: skip
        messages = context.build_prompt(None, turns, context=None).messages
        sent = [call["function"]["arguments"] for call in messages[1]["tool_calls"]]
        assert sent[:2] == ["{}", '{"invalid": "{not json"}']
        request = ChatRequest(chosen.model, messages, 4)
        assert (await chosen.client.complete(request)).usage.completion_tokens > 0

    async def test_continued_answer_may_call_tools(self, server: Server) -> None:
        chosen = choose_target(await refresh_server(server))
        offer = await sync_to_async(tool_settings.offer)(
            ToolSettings({"calculator": "always"}), NOBODY
        )
        begun: list[Message] = [
            {"role": "user", "content": "6 * 7?"}, {"role": "assistant", "content": "It is"},
        ]  # fmt: skip
        request = ChatRequest(chosen.model, begun, 4, tools=offer.definitions())
        assert (await chosen.client.complete(request)).usage.completion_tokens > 0


@pytest.mark.django_db
def test_everything_that_is_offered_is_a_valid_definition() -> None:
    for tool in tools.available(NOBODY):
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        assert callable(tool.function())
