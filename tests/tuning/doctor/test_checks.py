"""Each check fires at its fault, alone, and is silent at a healthy server and at the unknown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from gguf.constants import PoolingType

from apps.llm.thinking import ThinkingSupport
from apps.tuning.doctor.answers import Answer, Answers, Arrival, Leaving, Silence, Thought
from apps.tuning.doctor.checks import CHECKS, check_all
from apps.tuning.doctor.checks.embeddings import POOLING_TYPES
from apps.tuning.doctor.findings import Finding, finding_lines
from apps.tuning.doctor.prompt_answers import PromptRead, Rendered, Turns
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.slots_seen import SlotsSeen
from apps.tuning.hooks import Cuts, Drafts, Prompts, Speeds, Swaps, Traffic
from apps.tuning.planner.hardware import HARDWARE
from tests.tuning.doctor.faults import FAULTS, SHAPE, UNCACHED, Case
from tests.tuning.doctor.readings import CHAT, EMBEDDINGS, chat_answers, embedding_answers


def healthy_answers(reading: Reading) -> Answers:
    return embedding_answers() if reading.embeds else chat_answers()


def found(reading: Reading, answers: Answers) -> list[Finding]:
    return check_all(reading, answers)


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.code)
def test_a_fault_is_named_alone_with_evidence_cost_and_flags(case: Case) -> None:
    answers = replace(healthy_answers(case.healthy), **case.answers)
    [finding] = found(replace(case.healthy, **case.reading), answers)
    assert finding.code == case.code
    assert case.evidence in finding.evidence
    assert case.flags in " ".join(finding.flags)
    assert case.configuration in finding.configuration
    assert case.measured in {None, finding.measured}
    is_measured = case.cost != "not measured"
    assert not is_measured or case.cost in finding.cost
    assert all(finding_lines(finding))


def test_every_check_has_a_fault_here() -> None:
    codes = {case.code for case in FAULTS}
    assert len(codes) == len(CHECKS)


@pytest.mark.parametrize("reading", [CHAT, EMBEDDINGS], ids=["chat", "embeddings"])
def test_a_healthy_server_has_no_finding(reading: Reading) -> None:
    assert found(reading, healthy_answers(reading)) == []


def test_nothing_known_is_no_fault() -> None:
    assert found(Reading(model="?"), Answers()) == []


SILENT: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
    ("a stall that is over", {"silent_seconds": 90.0}, {}),
    ("slots of others", {}, {"has_token": False, "silence": Silence(60.0, SlotsSeen.BUSY)}),
    ("slots unknown", {}, {"has_token": False, "silence": Silence(60.0, SlotsSeen.UNKNOWN)}),
    ("few loads", {"kind": "llama-swap", "swaps": Swaps(loads=90, most=6)}, {}),
    ("two long prompts", {"traffic": Traffic(prompts=Prompts(requests=2, cut=2))}, {}),
    ("few long prompts", {"traffic": Traffic(prompts=Prompts(requests=500, refused=9))}, {}),
    (
        "rates of a healthy GPU",
        {
            "gpus": (HARDWARE["RTX 4090"],),
            "weight_bytes": 10**10,
            "parameters": 9 * 10**9,
        },
        {"first": PromptRead(4000, 0, 1.5), "again": PromptRead(4000, 3990, 0.1)},
    ),
    (
        "a small model on a large GPU",
        {"gpus": (HARDWARE["H200"],), "weight_bytes": 3 * 10**8, "parameters": 6 * 10**8},
        {
            "arrival": Arrival(401, 1.0, 1.0, 0.0),
            "first": PromptRead(900, 0, 0.3),
            "again": PromptRead(900, 890, 0.2),
        },
    ),
    (
        "a slow network",
        {"gpus": (HARDWARE["RTX 4090"],), "parameters": 8 * 10**9},
        {"first": PromptRead(1000, 0, 8.5, 0.3), "again": PromptRead(1000, 950, 0.5, 0.1)},
    ),
    (
        "rates of an unknown machine",
        {"weight_bytes": 10**11, "parameters": 10**11},
        {"arrival": Arrival(3, 2.0, 2.0, 0.0), "first": PromptRead(900, 0, 90.0)},
    ),
    ("a key", {"is_keyless": False, "allowed_origin": "*"}, {}),
    ("no key, own origins alone", {"is_keyless": True, "allowed_origin": ""}, {}),
    ("a model of short context", {"context": 512, "context_trained": 512}, {}),
    ("one slot without jobs", {"slots": 1, "uses": frozenset({"chat"})}, {}),
    (
        "a cache that moves",
        {"command": "x --cache-reuse 64", "shape": replace(SHAPE, sliding_window=512)},
        {"changed": PromptRead(9, 8, 0.1)},
    ),
    ("another slot", {"command": "x --cache-reuse 64", "shape": SHAPE}, {}),
    (
        "a model that does not think",
        {"thinking": ThinkingSupport(thinks=False)},
        {"turns": Turns(4000, 4000, keeps_reasoning=False)},
    ),
    ("a second message not asked", {}, {"next_turn": None, "turns": Turns(9, 2, False)}),
    ("drafts of repeated words alone", {"drafts_with": "ngram-simple"}, {}),
    (
        "drafts that are made",
        {"drafts_with": "draft-simple", "traffic": Traffic(drafts=Drafts(74, 70, 100))},
        {},
    ),
    ("a date at the end", {}, {"rendered": Rendered(1000, 990, 1.1)}),
    ("a date alone", {"template": "{{ strftime_now('%d %b %Y') }}"}, {}),
    ("a proxy's cache", {"is_llama_cpp": False}, {"again": UNCACHED}),
    ("a slow server", {}, {"arrival": Arrival(8, 7.0, 6.0, 0.9)}),
    ("a busy machine", {}, {"arrival": Arrival(1000, 1.0, 0.9, 0.15)}),
    ("a batch that was computed already", {}, {"leaving": Leaving(3, 0.3, 120)}),
    ("a long thought, and an answer", {}, {"thought": Thought(300, 512, 5.0, is_cut=False)}),
    ("two answers without content", {"traffic": Traffic(ended=2, only_thought=2)}, {}),
    ("few of many answers", {"traffic": Traffic(ended=200, only_thought=9)}, {}),
    ("drafts that pay", {}, {"drafts": Drafts(74, 74, 100)}),
    ("half of the drafts", {"traffic": Traffic(drafts=Drafts(3000, 1500, 4000))}, {}),
    ("few drafts, of repeated words", {}, {"drafts": Drafts(48, 2, 400)}),
    ("few tokens", {}, {"drafts": Drafts(60, 0, 20)}),
    (
        "a model on the GPU",
        {"weight_bytes": 5 * 1024**3, "traffic": Traffic(gpu_memory=7000), "command": "x -ngl 9"},
        {},
    ),
    ("no GPU reported", {"weight_bytes": 90 * 1024**3}, {"arrival": Arrival(3, 2.0, 2.0, 0.01)}),
    ("two requests cut off", {"traffic": Traffic(cuts=Cuts(2, 6000, 18_000_000))}, {}),
    ("a server that dies at once", {"traffic": Traffic(cuts=Cuts(9, 900, 90_000))}, {}),
    ("ends of any age", {"traffic": Traffic(cuts=Cuts(3, 9000, 35_000_000))}, {}),
    ("few hours", {"traffic": Traffic(speeds=Speeds((20.0,) * 5, (40.0,) * 99))}, {}),
    ("more load", {"traffic": Traffic(speeds=Speeds((20.0,) * 9, (40.0,) * 99, 3.0, 1.0))}, {}),
    ("hours that differ", {"traffic": Traffic(speeds=Speeds((9.0, 60.0) * 4, (40.0,) * 9))}, {}),
    ("a cut answer", {}, {"schema": Answer('{"col', "", "length", 64)}),
]


@pytest.mark.parametrize(("name", "reading", "answers"), SILENT, ids=[case[0] for case in SILENT])
def test_what_is_no_fault_is_not_named(
    name: str, reading: Mapping[str, Any], answers: Mapping[str, Any]
) -> None:
    assert found(replace(CHAT, **reading), replace(chat_answers(), **answers)) == []


def test_the_pooling_of_the_file_may_be_named_again() -> None:
    reading = replace(
        EMBEDDINGS, command="llama-server --pooling mean", shape=replace(SHAPE, pooling=1)
    )
    assert found(reading, embedding_answers()) == []


def test_a_small_embedding_context_is_left_to_the_batch() -> None:
    assert found(replace(EMBEDDINGS, context=512, slots=1), embedding_answers()) == []


def test_kinds_of_pooling_are_numbered_as_in_model_files() -> None:
    known = {one.value: one.name.lower() for one in PoolingType}
    assert {number: known[number] for number in POOLING_TYPES} == POOLING_TYPES
