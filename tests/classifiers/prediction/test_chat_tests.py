"""A chat model beside the classifier: through the pump, on a real llama-server with its grammar."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from apps.batch import pump_heartbeat
from apps.batch.models import Batch, Item, ItemStatus
from apps.batch.pump.pump import run_pump
from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.row_texts import load_texts
from apps.classifiers.models import ChatTest, Classifier
from apps.classifiers.prediction import chat_labels, chat_test_results, chat_tests
from apps.classifiers.views.chat_tests import target_choices
from apps.files import ExampleRow
from apps.llm.client import close_clients
from apps.llm.thinking import NOT_REPORTED
from apps.llm.token_bound import max_tokens_of
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.classifiers import factories
from tests.conftest import create_server
from tests.environment import FOLDER
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import THINKING_TEMPLATE, write_tiny_gguf


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:

    servers: list[int] = []
    monkeypatch.setattr(pump_heartbeat, "publish_work", servers.append)
    return servers


@pytest.fixture
def made(alice: User, embedding_server: Server) -> Classifier:
    return factories.trained(alice)


async def _work_off(server_id: int) -> None:
    try:
        await run_pump(server_id)
    finally:
        await close_clients()
        await close_async_redis()


@pytest.fixture(scope="module")
def thinking_process() -> Iterator[LlamaProcess]:
    model = write_tiny_gguf(FOLDER / "thinking-labels.gguf", template=THINKING_TEMPLATE)
    with LlamaProcess(model, parallel=2, context_per_slot=4096) as process:
        yield process


@pytest.fixture
def thinker(db: None, thinking_process: LlamaProcess) -> Server:
    return create_server(thinking_process, "Thinker")


def finish(test: ChatTest, outputs: list[dict[str, Any] | None]) -> None:
    """As a pump would leave the rows: None is an invalid answer."""
    for item, output in zip(Item.objects.filter(batch=test.batch), outputs, strict=True):
        item.status = ItemStatus.ACCEPTED if output else ItemStatus.REJECTED
        item.output, item.raw = output, "nonsense <b>"
        item.prompt_tokens, item.completion_tokens = 90, 10
        item.save()
    Batch.objects.update(status="done", active_seconds=12.0)
    test.batch.refresh_from_db()


@pytest.mark.django_db(transaction=True)
def test_chat_model_is_tested_against_the_classifier(
    browser: Client, made: Classifier, server: Server, woken: list[int]
) -> None:
    url = f"/classify/{made.pk}/chat/"
    page = browser.get(url).content.decode()
    assert "zero-shot" in page
    target = page.split('<option value="')[1].split('"')[0]
    answer = browser.post(url, {"target": target, "shots": 1, "rows": 4})
    assert answer.status_code == 302, answer.content.decode()
    assert woken == [server.pk]
    test = ChatTest.objects.get()
    assert test.batch.total == 4
    asyncio.run(_work_off(server.pk))
    test.batch.refresh_from_db()
    assert test.batch.status == "done"
    found = chat_test_results.read_result(test)
    assert found.done == 4
    # The model writes nonsense, but its server's grammar lets it write labels only.
    answered = Item.objects.filter(batch=test.batch, status=ItemStatus.ACCEPTED)
    assert answered.count() + found.invalid == 4
    assert {item.output["label"] for item in answered} <= {"card", "hello", "rate"}
    assert found.tokens_per_row
    page = browser.get(url).content.decode()
    assert "The chat model" in page
    assert "hx-trigger" not in page.split('id="chat-tests"')[1].split(">")[0]


@pytest.mark.django_db(transaction=True)
def test_chat_test_counts_right_and_missing_answers(
    browser: Client, made: Classifier, server: Server
) -> None:
    run = factories.newest(made)
    test = chat_tests.start_chat_test(run, server=server, model="m", rows=6, shots=0)
    items = list(Item.objects.filter(batch=test.batch))
    known = [entry["label"] for entry in run.per_class]
    truths = [item.input["text"][:2] for item in items]
    right = {"my": "card", "wh": "rate", "HE": "hello"}
    outputs: list[dict[str, Any] | None] = [
        {"label": right[start], "confidence": 0.8} for start in truths
    ]
    outputs[0] = None
    outputs[1] = {"label": next(x for x in known if x != right[truths[1]]), "confidence": 0.8}
    finish(test, outputs)
    found = chat_test_results.read_result(test)
    assert found.chat is not None
    assert found.classifier is not None
    assert found.chat.accuracy == pytest.approx(4 / 6)
    assert found.classifier.accuracy == pytest.approx(run.metrics["accuracy"])
    assert found.chat.ece == pytest.approx(0.0, abs=1e-9)  # says 80 %, and is right 4 times in 5
    assert not found.has_calibration, "of six rows nothing is printed"
    assert (found.invalid, found.failed) == (1, 0)
    assert (found.seconds_per_row, found.tokens_per_row) == (2.0, 100.0)
    assert found.differ >= 2
    page = browser.get(f"/classify/{made.pk}/chat/").content.decode()
    assert "nonsense &lt;b&gt;" in page
    assert browser.post(f"/classify/{made.pk}/chat/{test.pk}/remove/").status_code == 302
    assert not Batch.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_not_yours_wrong_verbs_and_bad_input(
    browser: Client, bobs_browser: Client, made: Classifier, server: Server
) -> None:
    test = chat_tests.start_chat_test(
        factories.newest(made), server=server, model="", rows=2, shots=0
    )
    url = f"/classify/{made.pk}/chat/"
    for path in ("", "list/"):
        assert bobs_browser.get(f"{url}{path}").status_code == 404
    for path in ("", f"{test.pk}/cancel/", f"{test.pk}/remove/"):
        assert bobs_browser.post(f"{url}{path}").status_code == 404
    assert browser.get(f"{url}{test.pk}/cancel/").status_code == 405
    assert browser.post(url, {"target": "999:x", "shots": 0, "rows": 5}).status_code == 422
    assert browser.post(url, {"target": f"{server.pk}:", "shots": 0, "rows": 0}).status_code == 422
    bad = {"target": f"{server.pk}:", "shots": 0, "rows": 2, "thinking": "much"}
    assert browser.post(url, bad).status_code == 422
    assert 'hx-trigger="every 2s"' in browser.get(f"{url}list/").content.decode()
    assert browser.post(f"{url}{test.pk}/cancel/").status_code == 302
    test.batch.refresh_from_db()
    assert test.batch.status == "cancelled"


@pytest.mark.parametrize(
    ("answer", "label", "confidence", "says"),
    [
        ('{"label": "a", "confidence": 70}', "a", 0.7, ""),
        ('{"label": "a", "confidence": 700}', "a", 1.0, ""),
        ('{"label": "z", "confidence": 70}', "", 0.0, "none of the labels"),
        ('{"label": ["a"], "confidence": 70}', "", 0.0, "none of the labels"),
        ('{"label": "a"}', "", 0.0, "no confidence"),
        ('{"label": "a", "confidence": true}', "", 0.0, "no confidence"),
        ('["a"]', "", 0.0, "none of the labels"),
        ("I think it is a", "", 0.0, "not valid JSON"),
        ("", "", 0.0, "not valid JSON"),
    ],
)
def test_read_answer_counts_no_label_where_none_is_given(
    answer: str, label: str, confidence: float, says: str
) -> None:
    found = chat_labels.read_answer(answer, ["a", "b"])
    assert found[:2] == (label, pytest.approx(confidence))
    assert says in found[2]


def test_the_prompt_is_the_same_for_every_row() -> None:
    system = chat_labels.system_prompt(["a", "b"], [("some\ntext", "a")])
    assert "- a\n- b" in system
    assert "Text: some text\nLabel: a" in system
    spec = chat_labels.Spec(["a", "b"], system)
    one, two = (chat_labels.request_for(spec, text, "m") for text in ("x", "y"))
    assert one.messages[0] == two.messages[0]
    assert one.response_format == two.response_format
    assert chat_labels.row_tokens(chat_labels.Spec(["a"], system), NOT_REPORTED) > 1000


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_came_to_no_end_has_failed_and_is_not_wrong(
    browser: Client, made: Classifier, server: Server
) -> None:
    test = chat_tests.start_chat_test(
        factories.newest(made), server=server, model="m", rows=6, shots=0
    )
    finish(test, [{"label": "card", "confidence": 0.8}] * 4 + [None, None])
    unfinished = Item.objects.filter(batch=test.batch).order_by("-index")[:2]
    for item in unfinished:
        item.code, item.reason = chat_labels.UNFINISHED, "The model spent all 48 tokens thinking."
        item.save()
    found = chat_test_results.read_result(test)
    assert (found.done, found.failed, found.invalid) == (6, 2, 0)
    assert found.paired is not None
    assert found.paired.rows == 4
    assert found.failures == [("The model spent all 48 tokens thinking.", 2)]
    page = browser.get(f"/classify/{made.pk}/chat/").content.decode()
    assert "The model spent all 48 tokens thinking." in page


@pytest.mark.django_db(transaction=True)
def test_a_model_that_thinks_answers_without(
    made: Classifier, thinker: Server, woken: list[int]
) -> None:
    test = chat_tests.start_chat_test(
        factories.newest(made), server=thinker, model="", rows=4, shots=0
    )
    asyncio.run(_work_off(thinker.pk))
    # Its nonsense may be cut off, but all of it is an answer: a thought would leave none.
    raws = Item.objects.filter(batch=test.batch).values_list("raw", flat=True)
    assert [raw.lstrip()[:1] for raw in raws] == ["{"] * 4


@pytest.mark.django_db(transaction=True)
def test_the_form_sets_how_the_model_thinks(
    browser: Client, made: Classifier, server: Server, woken: list[int]
) -> None:
    form = {"target": f"{server.pk}:", "shots": 0, "rows": 2, "thinking": "512"}
    for thinking, stored in (("512", 512), ("", "off"), ("default", "default")):
        response = browser.post(f"/classify/{made.pk}/chat/", form | {"thinking": thinking})
        assert response.status_code == 302
        test = ChatTest.objects.latest("pk")
        assert test.batch.spec["thinking"] == stored


def prompt_of(test: ChatTest) -> str:
    return str(test.batch.spec["system"])


@pytest.mark.django_db(transaction=True)
def test_the_chat_model_reads_the_whole_text(
    alice: User, embedding_server: Server, server: Server
) -> None:
    rows = [
        ExampleRow(f"{row.text} {'and so on ' * 210}"[:2_020] + " the end", row.label)
        for row in factories.rows(4)
    ]
    made = factories.trained(alice, factories.dataset(alice, rows))
    test = chat_tests.start_chat_test(
        factories.newest(made), server=server, model="m", rows=3, shots=0
    )
    spec = chat_labels.Spec.read(test.batch.spec)
    for item in Item.objects.filter(batch=test.batch):
        asked = chat_labels.request_for(spec, item.input["text"], "m").messages[1]["content"]
        assert len(asked) > 2_020
        assert asked.endswith("the end")
    assert chat_labels.row_tokens(spec, NOT_REPORTED) > 2_020 // 3


@pytest.mark.django_db(transaction=True)
def test_examples_are_as_many_as_are_said_and_not_the_surest_alone(
    browser: Client, made: Classifier, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = factories.newest(made)
    known = row_results.load(Path(settings.CLASSIFIERS_DIR), run.artefact)
    surest = set()
    for code in range(3):
        mine = np.flatnonzero(known.train.truth == code)
        surest |= set(
            mine[np.argsort(-known.train.label_probability[mine], kind="stable")[:3]].tolist()
        )
    test = chat_tests.start_chat_test(run, server=server, model="m", rows=2, shots=3)
    system = str(test.batch.spec["system"])
    assert system.count("\nLabel: ") == 9
    labels = [line for line in system.splitlines() if line.startswith("Label: ")]
    assert labels != sorted(labels, key=labels.index)  # not one label after the other
    texts = load_texts(run, known.train, sorted(surest))
    assert not all(f"Text: {text}\n" in system for text in texts)
    monkeypatch.setattr(chat_tests, "MOST_EXAMPLES", 7)
    assert chat_tests.start_chat_test(run, server=server, model="m", rows=2, shots=5).shots == 2
    page = browser.get(f"/classify/{made.pk}/chat/").content.decode()
    assert "2 examples per label (5 requested, max 7 in total)" in page


@pytest.mark.django_db(transaction=True)
def test_own_instructions_and_what_labels_mean(
    browser: Client, made: Classifier, server: Server
) -> None:
    url = f"/classify/{made.pk}/chat/"
    form = {"target": f"{server.pk}:", "shots": 0, "rows": 2}
    answer = browser.post(url, form | {"descriptions": "nothing: at all"})
    assert answer.status_code == 422
    assert "No label at “nothing: at all”. Labels: card" in answer.content.decode()
    told = {"instructions": "Sort these.", "descriptions": "card: a lost card\n\nrate:exchange"}
    assert browser.post(url, form | told).status_code == 302
    system = str(ChatTest.objects.get().batch.spec["system"])
    assert system.startswith("Sort these.")
    assert "- card: a lost card\n- hello\n- rate: exchange" in system


def test_models_that_only_embed_are_not_offered(embedding_server: Server, server: Server) -> None:
    server.stored_facts = {"models": [{"id": "text-embedding-strict"}, {"id": "writer"}]}
    server.save()
    embedding_server.stored_facts = {"models": [{"id": "vectors"}]}
    embedding_server.save()
    assert [label for _, label in target_choices()] == ["Chat: writer"]


@pytest.mark.parametrize(
    ("text", "least"),
    [("word " * 300, 400), ("今天天气很好" * 100, 600), ("สวัสดีครับ" * 50, 500), ("", 0)],
)
def test_tokens_are_bounded_in_every_script(text: str, least: int) -> None:
    assert least <= max_tokens_of(text) <= 2 * len(text) + 1
