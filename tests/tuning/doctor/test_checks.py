"""Each check fires at its fault, alone, and is silent at a healthy server and at the unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from apps.tuning.doctor.answers import Answer, Answers, LongText, PromptRead, Rendered
from apps.tuning.doctor.checks import CHECKS, check_all
from apps.tuning.doctor.findings import Finding, finding_lines
from apps.tuning.doctor.reading import Reading
from tests.tuning.doctor.readings import CHAT, EMBEDDINGS, chat_answers, embedding_answers


@dataclass(frozen=True)
class Case:
    """A fault: what differs from a healthy server, and words of the finding."""

    code: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    evidence: str = ""
    cost: str = "not measured"
    flags: str = ""
    healthy: Reading = CHAT


UNCACHED = PromptRead(1000, 12, 0.5)
CLOCK = "{{ strftime_now('%d %b %Y, %H:%M') }}"
FAULTS = [
    Case("no-key", {"is_keyless": True}, evidence="doctor.example", flags="--api-key-file"),
    Case(
        "small-context",
        {"context": 256, "slots": 8},
        {"tool_prompt_tokens": 409},
        cost="409 tokens, did not fit",
        evidence="8 slots of 256 tokens each",
        flags="-c 32768 -np 8",
    ),
    Case(
        "prompt-cache",
        answers={"again": UNCACHED, "again_if_asked": PromptRead(1000, 990, 0.02)},
        evidence="12 of 1,000 tokens came from the prompt cache. When the request itself",
        cost="988 tokens processed again, first token after 0.50 s instead of 0.02 s",
        flags="--cache-prompt",
    ),
    Case(
        "prompt-cache",
        answers={"again": UNCACHED, "again_if_asked": UNCACHED},
        evidence="12 of 1,000",
        cost="first token after 0.50 s.",
    ),
    Case(
        "moving-template",
        {"template": "{{ strftime_now('%H:%M:%S') }}"},
        {"again": UNCACHED, "rendered": Rendered(1010, 6, 1.1)},
        evidence="1.1 s apart. Of 1,010 characters the first 6 are the same",
        cost="988 tokens",
        flags="--chat-template-file",
    ),
    Case(
        "clock-in-template",
        {"template": CLOCK},
        {"rendered": Rendered(1010, 1010, 1.1)},
        evidence="%d %b %Y, %H:%M",
    ),
    Case("no-tools", {"takes_tools": False}, {"shows_tools": False}, evidence="supports_tools"),
    Case("no-tools", answers={"tools_refused": "needs --jinja"}, evidence="needs", flags="--jinja"),
    Case(
        "thinks-anyway",
        answers={"thinking_off": Answer("", "Well, ", "length", 32)},
        evidence="enable_thinking: false",
        cost="All 32 tokens",
        flags="--reasoning-budget 1",
    ),
    Case("thinks-anyway", answers={"thinking_off": Answer("<think>Well", "", "length", 32)}),
    Case("schema-ignored", answers={"schema": Answer("Blue.", "", "stop", 2)}, evidence="Blue."),
    Case(
        "schema-ignored",
        answers={"schema": Answer('{"colour": "blue"}', "", "stop", 2)},
        evidence="blue",
    ),
    Case("one-slot", {"slots": 1}, evidence="1 slot", flags="-np 4 -c 16384"),
    Case("no-metrics", {"shows_metrics": False}, evidence="/props", flags="--metrics"),
    Case("no-slots", {"shows_slots": False}, evidence="/props", flags="--slots"),
    Case(
        "no-pooling",
        answers={"embedding_refused": "Pooling type 'none'", "norm": None, "long_text": None},
        evidence="Pooling type 'none'",
        healthy=EMBEDDINGS,
    ),
    Case("not-normalised", answers={"norm": 5.67}, evidence="5.670", healthy=EMBEDDINGS),
    Case(
        "small-batch",
        answers={"long_text": LongText(2040, 512)},
        evidence="2,040 tokens was refused: the physical batch takes 512",
        flags="-b 2048 -ub 2048",
        healthy=EMBEDDINGS,
    ),
]


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
    ("a key", {"is_keyless": False, "allowed_origin": "*"}, {}),
    ("no key, own origins alone", {"is_keyless": True, "allowed_origin": ""}, {}),
    ("a model of short context", {"context": 512, "context_trained": 512}, {}),
    ("one slot without jobs", {"slots": 1, "uses": frozenset({"chat"})}, {}),
    ("a date at the end", {}, {"rendered": Rendered(1000, 990, 1.1)}),
    ("a date alone", {"template": "{{ strftime_now('%d %b %Y') }}"}, {}),
    ("a proxy's cache", {"is_llama_cpp": False}, {"again": UNCACHED}),
    ("a cut answer", {}, {"schema": Answer('{"col', "", "length", 64)}),
]


@pytest.mark.parametrize(("name", "reading", "answers"), SILENT, ids=[case[0] for case in SILENT])
def test_what_is_no_fault_is_not_named(
    name: str, reading: Mapping[str, Any], answers: Mapping[str, Any]
) -> None:
    assert found(replace(CHAT, **reading), replace(chat_answers(), **answers)) == []


def test_a_small_embedding_context_is_left_to_the_batch() -> None:
    assert found(replace(EMBEDDINGS, context=512, slots=1), embedding_answers()) == []
