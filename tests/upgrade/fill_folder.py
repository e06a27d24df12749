"""Fills a workbench with an object of every kind, and writes it down for the upgrade tests.

Run once, by hand, in a checkout of the version whose data folder is wanted:

    cp fill_folder.py CHECKOUT/tests/test_fill_folder.py
    WORKBENCH_SECRET_KEY=upgrade FOLDER=/somewhere \
        python -m pytest --migrations tests/test_fill_folder.py

Writes FOLDER/workbench.sqlite3 and FOLDER/files/ (uploads, attachments, classifiers); on PostgreSQL
(WORKBENCH_TEST_DATABASE_URL) FOLDER/postgres.sql.
"""

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from apps.llm.models import DefaultServer, Kind, Server, State
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.batch.models import Batch, BatchStatus, Course, ItemStatus, PumpLease
from apps.chat import models as chat
from apps.classifiers.models import ChatTest, FilePrediction
from apps.core.models import ApiKey, LoginLink
from apps.datasets import models as datasets
from apps.generation.models import RecipeVersion, SavedRecipe, StoredRows
from apps.mcp.models import ToolServer, Transport
from tests.classifiers import factories
from tests.generation.conftest import finish, new_job

NOW = timezone.now()
Path(os.environ["WORKBENCH_DATA"]).mkdir(exist_ok=True)  # else made with the key that is set


def fill_chat(alice: User, server: Server) -> None:
    system = chat.SystemPrompt.objects.create(
        owner=alice, name="Short", version=2, text="Answer in one sentence."
    )
    chat.Preset.objects.create(
        owner=alice,
        name="Careful",
        server=server,
        model="demo",
        system_prompt=system,
        params={"temperature": 0.2, "max_tokens": 200},
        response_format={"fields": [{"name": "city", "type": "string"}]},
    )
    talk = chat.Conversation.objects.create(
        owner=alice,
        title="Kettles",
        server=server,
        model="demo",
        system_prompt=system,
        params={"temperature": 0.7},
        pinned=True,
    )
    chat.Conversation.objects.create(owner=alice, title="Imported", source="chatgpt", archived=True)
    chat.Conversation.objects.create(owner=alice, title="Gone", removed=NOW)
    tag = chat.Tag.objects.create(owner=alice, name="kitchen")
    talk.tags.add(tag)
    question = chat.Message.objects.create(
        conversation=talk, role="user", content="Which kettle is the quietest?", status="complete"
    )
    note = chat.Attachment.objects.create(
        owner=alice,
        message=question,
        stored_as="0b0f3a4e-0000-4000-8000-000000000001",
        name="kettles.txt",
        kind="text",
        media_type="text/plain",
        size=12,
        text="Three kettles.",
        tokens=4,
    )
    note.path.parent.mkdir(parents=True, exist_ok=True)
    note.path.write_text("Three kettles.")
    answer = chat.Message.objects.create(
        conversation=talk,
        parent=question,
        role="assistant",
        content="The blue one.\n\n```python\nx = 1\n```",
        reasoning="They ask for a kettle.",
        status="complete",
        model="demo",
        finish_reason="stop",
        prompt_tokens=40,
        cached_tokens=30,
        completion_tokens=12,
        ttft_ms=120.5,
        tokens_per_second=33.0,
        reasoning_ms=800.0,
        kept_from=0,
        system_prompt=system,
        lost_tokens=5,
        lost_reason="The system prompt changed.",
        finished=NOW,
        request={"max_tokens": 200},
    )
    chat.ToolCall.objects.create(
        answer=answer,
        round=1,
        call_id="call_1",
        name="calculator",
        arguments='{"expression": "2 + 2"}',
        text_to=3,
        reasoning_to=4,
        state="done",
        result="4",
        finished=NOW,
    )
    removed = chat.Message.objects.create(
        conversation=talk, parent=answer, role="user", content="Never mind.", removed=NOW
    )
    failed = chat.Message.objects.create(
        conversation=talk,
        parent=answer,
        role="user",
        content="And the fastest?",
        status="complete",
        pinned=True,
    )
    last = chat.Message.objects.create(
        conversation=talk,
        parent=failed,
        role="assistant",
        content="The",
        status="failed",
        error_code="unreachable",
        error_detail="Nobody answers there.",
        model="demo",
    )
    assert removed.pk
    chat.Summary.objects.create(upto=answer, state="ready", text="They talked about kettles.")
    talk.active_leaf = last
    talk.save()
    chat.Share.objects.create(
        owner=alice,
        conversation=talk,
        title="Kettles",
        messages=[{"role": "user", "content": "Which kettle is the quietest?"}],
    )


def fill_data(browser: Client, alice: User) -> datasets.Dataset:
    rows = "text,label,split\nmy card is lost,card,train\nwhat is the rate,rate,test\n,card,\n"
    browser.post("/datasets/new/", {"file": SimpleUploadedFile("bank.csv", rows.encode())})
    data = factories.dataset(alice)
    datasets.Rejection.objects.create(
        dataset=data, file="bank.csv", row=3, column="text", reason="No text."
    )
    first, second = data.examples.order_by("index")[:2]
    revision = datasets.Revision.objects.create(
        dataset=data, number=data.version + 1, what="Relabelled 1 row", by=alice, rows=1
    )
    datasets.Change.objects.create(
        revision=revision,
        index=first.index,
        before={"text": first.text, "label": "rate", "split": ""},
        after={"text": first.text, "label": first.label, "split": ""},
    )
    data.version += 1
    data.save()
    datasets.NearCopy.objects.create(
        dataset=data, index=first.index, other_index=second.index, cosine=0.97
    )
    queue = datasets.Queue.objects.create(dataset=data, name="Probably labelled wrong", left_out=1)
    datasets.QueueItem.objects.create(
        queue=queue, place=0, index=first.index, reason="label_error", suggested=["rate"]
    )
    assert datasets.Upload.objects.exists()
    return data


def fill_jobs(alice: User, server: Server, data: datasets.Dataset) -> None:
    done = new_job(alice, server)
    saved = SavedRecipe.objects.create(owner=alice, name="Reviews")
    version = RecipeVersion.objects.create(saved=saved, number=1, body=done.batch.spec["recipe"])
    StoredRows.objects.create(owner=alice, origin="seeds.csv", count=1, rows=[{"topic": "tea"}])
    for index in range(10):
        label = ["positive", "negative"][index % 2]
        row = {"text": f"Text {index}.", "label": label}
        status = ItemStatus.ACCEPTED if index < 8 else ItemStatus.REJECTED
        extra: dict[str, Any] = {"output": row} if index < 8 else {"code": "length", "reason": "x"}
        finish(
            done,
            index,
            status,
            raw=json.dumps(row),
            prompt_tokens=60,
            cached_tokens=50,
            completion_tokens=20,
            reviewed=index < 2,
            edited=row | {"text": "Better."} if index == 0 else None,
            **extra,
        )
    Batch.objects.filter(pk=done.batch_id).update(
        status=BatchStatus.DONE,
        worked_s=10.0,
        started=NOW - timedelta(minutes=1),
        finished=NOW,
        prompt_tokens=600,
        cached_tokens=500,
        completion_tokens=200,
        made_before=3,
        day=NOW.date(),
        day_began_at=100,
        daily_tokens=100_000,
        name="Reviews",
    )
    Course.objects.create(
        batch_id=done.batch_id,
        points=[
            [NOW.timestamp() - 20, 10.0, 20.0, 4, 80],
            [NOW.timestamp() - 10, 10.0, 30.0, 4, 120],
        ],
        tried=NOW,
    )
    done.version = version
    done.save()
    paused = new_job(alice, server)
    Batch.objects.filter(pk=paused.batch_id).update(
        status=BatchStatus.PAUSED, reason="Paused by alice.", name="Paused"
    )
    PumpLease.objects.create(
        server=server, token=4, until=NOW, heartbeat=NOW, holder="elsewhere/1/2"
    )


def fill_classifiers(alice: User, data: datasets.Dataset) -> None:
    made = factories.trained(alice, data)
    run = factories.newest(made)
    FilePrediction.objects.create(
        classifier=made,
        run=run,
        status="cancelled",
        file_name="questions.csv",
        column="text",
        form="csv",
        counts={"card": 3},
        done=3,
        total=9,
    )
    batch = Batch.objects.filter(status=BatchStatus.DONE).latest("pk")
    ChatTest.objects.create(
        run=run,
        batch=Batch.objects.create(
            owner=alice,
            handler="chat_labels",
            spec={},
            status=BatchStatus.CANCELLED,
            name="Chat test",
        ),
        shots=0,
    )
    assert batch.pk


def fill_newer(alice: User, bob: User, data: datasets.Dataset) -> None:
    """What 5608c75 did not have."""
    newer: dict[str, dict[str, Any]] = {
        "core.Removal": {"user": bob},
        "chat.Preferences": {"owner": alice, "reads_ahead": False},
        "datasets.BulkChange": {
            "dataset": data,
            "kind": "merge_labels",
            "args": {"sources": ["card"], "target": "rate"},
            "by": alice,
            "total": 12,
            "error": "The worker crashed.",
        },
    }
    known = {model._meta.label: model for model in apps.get_models()}
    for label, values in newer.items():
        if model := known.get(label):
            model._base_manager.create(**values)


@pytest.mark.django_db(transaction=True)
def test_fill(
    alice: User,
    bob: User,
    carol: User,
    browser: Client,
    server: Server,
    embedding_server: Server,
) -> None:
    folder = Path(os.environ["FOLDER"])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    settings.CLASSIFIERS_DIR = folder / "files" / "classifiers"
    settings.UPLOADS_DIR = folder / "files" / "uploads"
    settings.DATA_DIR = folder / "files"
    ApiKey.objects.create(user=alice, name="nightly", start="wb_abc", token_hash="0" * 64)
    expiry = {"expires": NOW} if hasattr(LoginLink, "expires") else {}
    LoginLink.objects.create(user=carol, token_hash="1" * 64, **expiry)
    swap = Server.objects.create(
        name="Swap",
        base_url="http://127.0.0.1:9/v1",
        kind=Kind.LLAMA_SWAP,
        state=State.READY,
        parallel=2,
        context_stated=8192,
        stored_facts={"slots": 2},
    )
    assert swap.pk
    DefaultServer.objects.get_or_create(use="titles", defaults={"server": server, "model": "demo"})
    ToolServer.objects.create(
        name="Kettle",
        slug="kettle",
        transport=Transport.HTTP,
        url="http://127.0.0.1:9/mcp",
        error="Nobody answers.",
        error_since=NOW,
        looked=NOW,
        tools=[],
        left_out=[],
    )
    fill_chat(alice, server)
    data = fill_data(browser, alice)
    fill_jobs(alice, server, data)
    fill_classifiers(alice, data)
    fill_newer(alice, bob, data)
    empty = [
        model._meta.label
        for model in apps.get_models()
        if model.__module__.startswith("apps.")
        and not model._default_manager.exists()
        and not model._base_manager.exists()
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("VACUUM INTO %s", [str(folder / "workbench.sqlite3")])
        else:
            place = connection.settings_dict
            address = ("-h", place["HOST"], "-p", str(place["PORT"]), "-U", place["USER"])
            with (folder / "postgres.sql").open("wb") as out:
                subprocess.run(
                    ["pg_dump", *address, "--inserts", "--no-owner", place["NAME"]],
                    stdout=out,
                    check=True,
                )
    assert empty == []
