"""Every route, asked with what its own description allows and forbids: never a 500, always JSON.

Bounded in number and the same each time; `WORKBENCH_SCHEMA_EXAMPLES` asks for more.
"""

import json
import os
import re
from io import BytesIO
from typing import Any

import pytest
import requests
import schemathesis
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings

from apps.chat.answering import runner
from apps.chat.conversations import projects
from apps.chat.conversations import services as chat
from apps.chat.knowledge import documents
from apps.chat.models import Preset, Role
from apps.classifiers import services as classifiers
from apps.core.models import ApiKey
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.servers.models import DefaultServer, Server, State, Use
from tests.generation.conftest import new_job
from tests.llama_process import free_port
from workbench.api import api as the_api

EXAMPLES = int(os.environ.get("WORKBENCH_SCHEMA_EXAMPLES", "4"))
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(the_api.get_openapi_schema())))
OPERATIONS = {
    operation.label: operation for operation in (each.ok() for each in SCHEMA.get_all_operations())
}
BASE = "http://localhost"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is begun by its route and not written: its server is away for 20 seconds."""
    monkeypatch.setattr(runner, "start_answer", lambda answer, sent=None: None)


@pytest.fixture
def ids(alice: User) -> dict[str, int]:
    """One row of each kind, by the first word of the routes; its model server is away."""
    server = Server.objects.create(
        name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1", state=State.UNREACHABLE
    )
    for use in Use:
        DefaultServer.objects.create(use=use, server=server)
    conversation = chat.open_conversation(owner=alice, title="t")
    question = conversation.messages.create(role=Role.USER, content="Hello")
    answer = conversation.messages.create(role=Role.ASSISTANT, parent=question, content="Hi")
    call = answer.tool_calls.create(round=1, call_id="a", name="calculator", arguments="{}")
    conversation.active_leaf = answer
    conversation.save()
    rows = [ExampleRow(f"text {n}", "ab"[n % 2], None) for n in range(8)]
    dataset = create_dataset(owner=alice, name="d", rows=rows, origin="tests")
    example = dataset.examples.first()
    assert example is not None
    classifier, run = classifiers.create_classifier(
        owner=alice, name="c", dataset=dataset, server=server
    )
    project = projects.create(alice, "Tea house")
    return {
        "servers": server.pk,
        "conversations": conversation.pk,
        "answers": answer.pk,
        "call": call.pk,
        "messages": question.pk,
        "presets": Preset.objects.create(owner=alice, name="p").pk,
        "projects": project.pk,
        "documents": documents.add(project, "menu.md", BytesIO(b"# Menu")).pk,
        "datasets": dataset.pk,
        "examples": example.pk,
        "classifiers": classifier.pk,
        "number": run.number,
        "jobs": new_job(alice, server).pk,
        "index": 0,
    }


def sent(client: Client, case: Any) -> Any:
    """A case, as a program would send it."""
    request = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
    body = request.body or b""
    headers = {name: value for name, value in request.headers.items() if name != "Cookie"}
    headers.pop("Content-Length", None)
    kind = headers.pop("Content-Type", "application/octet-stream")
    return client.generic(
        request.method or "GET",
        (request.url or "").removeprefix(BASE),
        body.encode() if isinstance(body, str) else body,
        kind,
        headers=headers,
    )


def checked(answer: Any, label: str) -> None:
    assert answer.status_code < 500 or answer.status_code in {502, 503}, (label, answer.content)
    if answer.status_code >= 400:
        assert set(answer.json()) == {"code", "detail", "errors"}, label
        assert answer.json()["detail"], label


@pytest.mark.parametrize("label", OPERATIONS)
def test_a_route(label: str, alice: User, ids: dict[str, int]) -> None:
    _, token = ApiKey.issue(user=alice, name="tests")
    client = Client(headers={"authorization": f"Bearer {token}"})
    operation = OPERATIONS[label]
    there = re.findall(r"/v1/(\w+)/\{pk\}", label)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy())
    def ask(case: Any) -> None:
        checked(sent(client, case), label)
        own = {"pk": ids.get(there[0])} if there else {}
        own |= {name: ids.get(name) for name in ("call", "number", "index")}
        for name, value in own.items():
            if value is not None and name in case.path_parameters:
                case.path_parameters[name] = value
        if there:
            checked(sent(client, case), label)

    ask()
