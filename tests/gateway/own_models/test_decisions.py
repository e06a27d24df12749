"""One caller, unchanged, asks a decision model and the classifier that replaces it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from django.utils import timezone

from apps.classifiers.models import Classifier
from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.models import Server, State

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_counters")]
CRITERIA = {"card": "about bank cards", "rate": "about exchange rates", "hello": None}


class DecisionModel(BaseHTTPRequestHandler):
    """Answers each question as llama-server with a decision model does: always the last option."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        questions = asked["questions"].items()
        answers = {name: self._decide([*one["criteria"]]) for name, one in questions}
        usage = {"input_tokens": 12, "output_tokens": 0}
        body = json.dumps({"answers": answers, "usage": usage}).encode()
        self.send_response(200 if self.path == "/v1/systemone" else 501)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _decide(self, options: list[str]) -> dict[str, Any]:
        rest = 0.1 / max(1, len(options) - 1)
        probabilities = dict.fromkeys(options, rest) | {options[-1]: 0.9}
        decided = {"choice": options[-1], "probabilities": probabilities, "confidence": 0.9}
        return {"type": "choice", **decided}

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def decider(db: None) -> Iterator[str]:
    """The name of a decision model at a server of its own."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), DecisionModel)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    facts = ServerFacts(models=[ModelFacts("laya", state="loaded")])
    server = Server(
        name="Decisions",
        base_url=f"http://127.0.0.1:{http.server_port}/v1",
        state=State.READY,
        checked_at=timezone.now(),
        stored_facts=facts.to_json(),
    )
    server.save()
    yield "laya"
    http.shutdown()
    http.server_close()


async def decide(program: httpx2.AsyncClient, model: str, text: str) -> tuple[str, float]:
    """Return the label and its probability: what a caller does, whoever answers."""
    question = {"type": "choice", "instructions": "What is it about?", "criteria": CRITERIA}
    body = {"model": model, "state": text, "questions": {"topic": question}}
    answer = await program.post("/v1/systemone", json=body)
    answer.raise_for_status()
    topic = answer.json()["answers"]["topic"]
    assert set(topic["probabilities"]) == set(CRITERIA)
    assert sum(topic["probabilities"].values()) == pytest.approx(1)
    assert answer.json()["usage"]["output_tokens"] == 0
    return topic["choice"], topic["confidence"]


async def test_a_classifier_replaces_a_decision_model(
    program: httpx2.AsyncClient, decider: str, topics: Classifier
) -> None:
    text = "what exchange rate do you give for euro amount 77"
    assert await decide(program, decider, text) == ("hello", 0.9)
    label, probability = await decide(program, f"classifier/{topics.pk}", text)
    assert label == "rate"
    assert 1 / 3 < probability <= 1
