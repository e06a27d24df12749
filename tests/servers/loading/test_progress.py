"""What a router's feed says of a model that is being loaded or downloaded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.servers.loading.progress import parse_line


def line(model: str = "m", status: str = "loading", **progress: Any) -> bytes:
    data: dict[str, Any] = {"status": status} | ({"progress": progress} if progress else {})
    return b"data: " + json.dumps({"model": model, "event": "x", "data": data}).encode()


FILES = {"u": {"done": 300, "total": 900}, "v": {"done": 100, "total": 100}}


def download(event: str, **data: Any) -> bytes:
    return b"data: " + json.dumps({"model": "m", "event": event, "data": data}).encode()


@pytest.mark.parametrize(
    ("told", "status", "share"),
    [
        (line(stages=["text_model"], current="text_model", value=0.5), "loading", 0.5),
        (line(stage="text_model", value=0.25), "loading", 0.25),  # as of June 2026
        (
            line(stages=["text_model", "mmproj_model"], current="text_model", value=1),
            "loading",
            0.9,
        ),
        (line(stages=["a", "b", "c"], current="c", value=0.5), "loading", 0.95),
        (line(stages=["a"], current="a", value=7), "loading", 1.0),
        (line(stage="fit_params"), "loading", None),
        (line(status="loaded"), "loaded", None),
        (download("download_progress", progress=FILES), "downloading", 0.4),
        (download("download_progress", **FILES), "downloading", 0.4),  # as llama.cpp documents it
        (
            download("download_progress", progress={"u": {"done": 0, "total": 0}}),
            "downloading",
            None,
        ),
        (download("download_progress", progress=7), "", None),
        (download("download_finished"), "download_finished", None),
        (download("download_failed"), "download_failed", None),
        (line("another", stage="text_model", value=0.25), "", None),
        (line(stage="text_model", value=10**400), "", None),
        (b'data: {"model": ' + b"[" * 100_000, "", None),
        (b": ping", "", None),
        (b"data: [1]", "", None),
        (b'data: {"model": "m", "data": 3}', "", None),
    ],
)
def test_parse_line_reads_status_and_share(told: bytes, status: str, share: float | None) -> None:
    assert parse_line(told, "m") == (status, share)


NUMBERS = st.sampled_from([0, 3, -1, 0.5, float("inf"), float("nan"), 10**400, True, None, "x"])
ODD = st.sampled_from([None, 3, "x", [], ["a", 1], {}, {"done": 1}])
PROGRESS = st.fixed_dictionaries(
    {}, optional={"value": NUMBERS, "current": ODD, "stage": ODD, "stages": ODD}
)
FILES_OF_ANY_SIZE = st.lists(
    st.fixed_dictionaries({"done": NUMBERS, "total": NUMBERS}), max_size=2
).map(lambda files: {str(place): file for place, file in enumerate(files)})
NEWS = st.builds(
    lambda event, status, progress: {
        "model": "m",
        "event": event,
        "data": {"status": status, "progress": progress},
    },
    st.sampled_from(["download_progress", "download_finished", "x", None]),
    ODD,
    ODD | PROGRESS | FILES_OF_ANY_SIZE,
)


@given(st.binary(max_size=40) | NEWS.map(lambda news: b"data: " + json.dumps(news).encode()))
def test_parse_line_gives_a_share_from_0_to_1_or_none_for_any_bytes(line: bytes) -> None:
    status, share = parse_line(line, "m")
    assert isinstance(status, str)
    assert share is None or 0 <= share <= 1
