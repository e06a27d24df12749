"""Files that were made to break the reading of them: each ends in a sentence, in bounds."""

import io
import json
import resource
import threading
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.chat.models import Conversation, Message
from apps.chat.transfer import json_guard, read, read_sandboxed, write
from apps.chat.transfer.json_guard import MAX_DEPTH, MAX_TEXT_BYTES, Guarded, TooMuch
from tests.chat.transfer.test_imports import CHATGPT, OPEN_WEBUI

CPU_SECONDS, MEMORY = 5, 30_000_000
OURS = {
    "messages": [
        {"id": 1, "role": "user", "content": "Sum?"},
        {
            "id": 2, "parent": 1, "role": "assistant", "content": "42",
            "tool_calls": [{"round": 1, "name": "sum", "arguments": "{}", "result": "42"}],
        },
    ]
}  # fmt: skip


def packed(data: bytes, name: str = "conversations.json") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def damaged() -> bytes:
    archive = bytearray(packed(json.dumps([CHATGPT] * 20).encode()))
    archive[60:90] = bytes(30)
    return bytes(archive)


LONG = b'[{"mapping": "' + b"x" * (64 * 1024**2)
HOSTILE = {
    "deep": b'[{"mapping":' + b"[" * 100_000,
    "deep objects": b'[{"mapping":' + b'{"a":' * 20_000,
    "a long text": LONG,
    "a long text, packed": packed(LONG),
    "packed too well": packed(b"[" + b" " * (300 * 1024**2)),
    "damaged": damaged(),
    "cut off": json.dumps([CHATGPT]).encode()[:-40],
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_file_is_refused_with_a_sentence_within_bounds(data: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    file = io.BytesIO(data)
    tracemalloc.start()
    try:
        with pytest.raises(read.BadFile) as refused:
            list(read_sandboxed.read_items(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert str(refused.value).endswith(".")
    assert after.ru_utime - before.ru_utime < CPU_SECONDS
    assert peak < MEMORY  # of this process; the other one has a limit of its own


def test_one_conversation_may_not_take_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(read_sandboxed.LIMITS, memory_bytes=256 * 1024**2)
    monkeypatch.setattr(read_sandboxed, "LIMITS", limits)
    huge = b'[{"messages": [' + b'{"id": 1, "role": "user"},' * 800_000
    with pytest.raises(read.BadFile, match="too much time or memory"):
        list(read_sandboxed.read_items(io.BytesIO(huge)))


def test_slow_writing_does_not_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks: list[float] = []

    class Clock(threading.Timer):
        def __init__(self, seconds: float, end: Callable[[], None]) -> None:
            clocks.append(seconds)
            super().__init__(seconds, end)

    monkeypatch.setattr(threading, "Timer", Clock)
    assert len(list(read_sandboxed.read_items(io.BytesIO(json.dumps([CHATGPT]).encode())))) == 1
    assert clocks == [24 * 60 * 60]
    assert read_sandboxed.LIMITS.cpu_seconds <= 180


def test_a_picture_in_an_export_is_not_too_long_a_text() -> None:
    chat: Any = deepcopy(OPEN_WEBUI)
    picture = f"data:image/png;base64,{'iVBO' * (5 * 1024**2)}"
    chat["chat"]["history"]["messages"]["1"]["files"] = [{"type": "image", "url": picture}]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    [found] = read_sandboxed.read_items(io.BytesIO(json.dumps([chat]).encode()))
    assert found.title == "Lamps"
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < CPU_SECONDS


@pytest.mark.parametrize("change", [{"round": "x"}, {"text_to": "9" * 5000}, {"round": [1]}])
def test_what_is_no_number_is_a_sentence(change: dict[str, Any]) -> None:
    data = json.loads(json.dumps(OURS))
    data["messages"][1]["tool_calls"][0] |= change
    with pytest.raises(read.BadFile, match="Chat 1 could not be read: it has an unexpected"):
        list(read.read(io.BytesIO(json.dumps([data]).encode())))


@pytest.mark.django_db
def test_halves_of_surrogates_and_nul_are_replaced(alice: User) -> None:
    data = json.loads(json.dumps(OURS)) | {"title": "a\0b", "tags": ["t\0g"]}
    data["messages"][0]["content"] = "Sum\0?"
    raw = json.dumps([data]).encode().replace(b"42", b"4\\ud8002", 1)
    write.import_file(alice, io.BytesIO(raw))
    question, answer = Message.objects.order_by("pk")
    assert question.content == "Sum\ufffd?"
    assert "\ud800" not in answer.content


@pytest.mark.django_db
def test_the_page_says_it_and_nothing_is_kept(alice: User, client: Client) -> None:
    client.force_login(alice)
    file = SimpleUploadedFile("conversations.json", HOSTILE["deep"])
    page = client.post(reverse("chat:import"), {"file": file})
    assert page.status_code == 422
    assert f"nested deeper than {MAX_DEPTH} levels" in page.content.decode()
    assert not Conversation.objects.exists()


# --- The guard, over whatever is written ------------------------------------------


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


TEXTS = st.text(alphabet='ab"\\[]{}é\n', max_size=12)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=VALUES, piece=st.integers(1, 7), ascii_only=st.booleans())
def test_the_guard_counts_as_a_parser_does(value: Any, piece: int, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    for allowed in {depth(value), max(0, depth(value) - 1)}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_guard, "MAX_DEPTH", allowed)
            if allowed == depth(value):
                assert read_through(data, piece) == data
            else:
                with pytest.raises(TooMuch):
                    read_through(data, piece)


def read_through(data: bytes, piece: int = 100_000, most: int = 10**9) -> bytes:
    guarded = Guarded(io.BytesIO(data), most)
    return b"".join(iter(lambda: guarded.read(piece), b""))


def test_a_text_may_be_long_but_not_for_ever() -> None:
    read_through(b'"' + b"x" * (MAX_TEXT_BYTES // 2) + b'"')
    with pytest.raises(TooMuch):
        read_through(b'"' + b"x" * (2 * MAX_TEXT_BYTES))
    with pytest.raises(TooMuch):
        read_through(b" " * 20, most=10)


# --- An export with anything anywhere ---------------------------------------------

ODD = st.sampled_from([None, True, -1, 1e308, 10**400, "x", "", [], {}, [None], {"a": 1}])


def places(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        return [(value, key) for key in keys] + [p for key in keys for p in places(value[key])]
    return []


@settings(max_examples=150, deadline=None)
@given(
    which=st.sampled_from([CHATGPT, OPEN_WEBUI, OURS]),
    changes=st.lists(st.tuples(st.integers(0, 500), ODD), min_size=1, max_size=3),
)
def test_an_export_is_read_or_refused_in_a_sentence(
    which: dict[str, Any], changes: list[tuple[int, Any]]
) -> None:
    data = json.loads(json.dumps([which]))
    for number, odd in changes:
        spots = places(data)
        if spots:
            holder, key = spots[number % len(spots)]
            holder[key] = deepcopy(odd)
    with suppress(read.BadFile):  # anything else is a 500
        list(read.read(io.BytesIO(json.dumps(data).encode())))
