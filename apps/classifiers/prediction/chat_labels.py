"""A chat model that labels texts: what the pump runs for each row. No database."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from apps.batch.handlers import JobContext, RowInput, RowOutcome, Verdict
from apps.core.schemas.json_types import JsonObject, JsonValue
from apps.llm.client import ChatRequest, Completion
from apps.llm.thinking import (
    Thinking,
    ThinkingSetting,
    ThinkingSupport,
    describe_missing_answer,
    plan_thinking,
)
from apps.llm.token_bound import max_tokens_of

HANDLER = "classifiers.chat_labels"
LONGEST_TEXT = 100_000  # characters: as long as a classifier takes it
EXAMPLES_LENGTH = 60_000  # characters of all examples together
EXAMPLE_LENGTHS = (150, 1_000)  # characters of one, at least and at most
INSTRUCTIONS = (
    "You label texts. Answer with a JSON object: the one label that fits the text best, and "
    "how sure you are of it, from 0 to 100."
)
UNFINISHED = "unfinished"
"""The code of a row whose answer came to no end: it counts as failed, never as wrong."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The values that all rows share. `system` stays byte-identical for the server's cache."""

    labels: list[str]
    system: str
    longest: int = 4_000 // 3
    """Tokens that the longest text may come to."""
    asked_shots: int | None = None
    """Examples of each label that were requested; None in old tests."""
    thinking: ThinkingSetting | None = None
    """None: off."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Spec":
        """Read a spec as any version has stored it: its results are shown whatever it lacks."""
        known = {name: int(data[name]) for name in ("longest", "asked_shots") if name in data}
        thinking = data.get("thinking")
        labels, system = list(data.get("labels", [])), str(data.get("system", ""))
        return cls(labels, system, thinking=thinking, **known)

    def to_json(self) -> JsonObject:
        return asdict(self)

    @property
    def max_tokens(self) -> int:
        return 48 + max(max_tokens_of(label) for label in self.labels) * 2

    @property
    def schema(self) -> JsonObject:
        """The label is one of those there are, because the server's grammar allows no other."""
        return {
            "type": "object",
            "properties": {
                "label": {"type": "string", "enum": list[JsonValue](self.labels)},
                "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
            },
            "required": ["label", "confidence"],
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class RowText:
    """The input of a row: a text of the test set."""

    text: str
    at: int
    """Its place among the test rows of the run."""

    @classmethod
    def read(cls, stored: JsonValue) -> "RowText":
        assert isinstance(stored, dict)  # as `to_json` wrote it
        given: dict[str, Any] = stored
        return cls(str(given["text"]), int(given["at"]))

    def to_json(self) -> JsonObject:
        return {"text": self.text, "at": self.at}


def system_prompt(
    labels: list[str],
    examples: list[tuple[str, str]],
    instructions: str = "",
    descriptions: Mapping[str, str] | None = None,
) -> str:
    """The same for every row, byte for byte; the row's text comes after it."""
    told = descriptions or {}
    lines = [
        instructions.strip() or INSTRUCTIONS,
        "",
        "Labels:",
        *(f"- {label}: {told[label]}" if told.get(label) else f"- {label}" for label in labels),
    ]
    if examples:
        shortest, longest = EXAMPLE_LENGTHS
        length = min(longest, max(shortest, EXAMPLES_LENGTH // len(examples)))
        lines += ["", "Examples:"]
        lines += [f"Text: {_cut(text, length)}\nLabel: {label}" for text, label in examples]
    return "\n".join(lines)


def _cut(text: str, length: int) -> str:
    line = " ".join(text[: 2 * length].split())
    return line if len(line) <= length else f"{line[:length]}…"


def request_for(spec: Spec, text: str, model: str) -> ChatRequest:
    return ChatRequest(
        model=model,
        messages=[
            {"role": "system", "content": spec.system},
            {"role": "user", "content": f"Text: {text}"},
        ],
        max_tokens=spec.max_tokens,
        params={"temperature": 0.0, "seed": 0},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "label", "strict": True, "schema": spec.schema},
        },
    )


def read_spec(data: JsonObject) -> Spec:
    return Spec.read(data)


def row_tokens(spec: Spec, thinking: ThinkingSupport) -> int:
    """Return the max tokens of a row: the longest one is known."""
    thought = plan_thinking(thinking, spec.thinking).extra_tokens
    return max_tokens_of(spec.system) + spec.longest + spec.max_tokens + thought


async def label_row(row: RowInput, context: JobContext[Spec]) -> RowOutcome:
    """Label one row: a `RunRow` of `apps.batch.handlers`.

    Raises:
        LLMError: the server did not answer in full.
    """
    spec = context.spec
    text = RowText.read(row.input).text
    thinking = context.cached(_thinking)
    thinking.support = context.thinking
    request = request_for(spec, text, context.model)
    complete = partial(row.draft.complete, context.client)
    completion = await thinking.complete(complete, request, spec.thinking)
    if unfinished := _unfinished(completion, spec.max_tokens):
        return RowOutcome(
            Verdict.REJECTED,
            raw=completion.text,
            code=UNFINISHED,
            reason=unfinished,
            usage=completion.usage,
            prompt=text,
        )
    label, confidence, problem = read_answer(completion.text, spec.labels)
    return RowOutcome(
        Verdict.REJECTED if problem else Verdict.ACCEPTED,
        output=None if problem else {"label": label, "confidence": confidence},
        raw=completion.text,
        code="invalid" if problem else "",
        reason=problem,
        usage=completion.usage,
        prompt=text,
    )


def _thinking(spec: Spec) -> Thinking:
    return Thinking()


def _unfinished(completion: Completion, max_tokens: int) -> str:
    """Say why an answer was not finished; empty if it was. It chose no label, not a wrong one."""
    if nothing := describe_missing_answer(completion, max_tokens):
        return nothing
    match completion.finish_reason:
        case "stop":
            return ""
        case "length":
            return f"The answer was cut off at {max_tokens:,} tokens."
    return f"The model ended with “{completion.finish_reason}”."


def read_answer(answer: str, labels: list[str]) -> tuple[str, float, str]:
    """Label, confidence from 0 to 1, and what is wrong with the answer, if anything is.

    What is no answer is counted as none: never a label drawn at random.
    """
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        return "", 0.0, "The answer is not valid JSON."
    if not isinstance(data, dict) or data.get("label") not in labels:
        return "", 0.0, "The answer has none of the labels."
    confidence = data.get("confidence")
    if not isinstance(confidence, int | float) or isinstance(confidence, bool):
        return "", 0.0, "The answer has no confidence."
    return data["label"], min(100.0, max(0.0, confidence)) / 100, ""
