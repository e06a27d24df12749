"""A chat model that labels texts: what the pump runs for each row. No database."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from apps.batch.handlers import Context, Outcome, Verdict, Work
from apps.llm.client import ChatRequest, Completion
from apps.llm.thinking import Thinking, plan, problem_of

HANDLER = "classifiers.chat_labels"
LONGEST_TEXT = 4_000  # characters
UNFINISHED = "unfinished"
"""The code of a row whose answer came to no end: it counts as failed, never as wrong."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What the rows share. `system` is kept as it was sent, so the server's cache can keep it."""

    labels: list[str]
    system: str

    @classmethod
    def read(cls, data: dict[str, Any]) -> "Spec":
        return cls(list(data["labels"]), str(data["system"]))

    @property
    def max_tokens(self) -> int:
        return 48 + max(len(label) for label in self.labels)

    @property
    def schema(self) -> dict[str, Any]:
        """The label is one of those there are, because the server's grammar allows no other."""
        return {
            "type": "object",
            "properties": {
                "label": {"type": "string", "enum": self.labels},
                "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
            },
            "required": ["label", "confidence"],
            "additionalProperties": False,
        }


def system_prompt(labels: list[str], examples: list[tuple[str, str]]) -> str:
    """The same for every row, byte for byte; the row's text comes after it."""
    lines = [
        "You label texts. Answer with a JSON object: the one label that fits the text best, and "
        "how sure you are of it, from 0 to 100.",
        "",
        "Labels:",
        *(f"- {label}" for label in labels),
    ]
    if examples:
        lines += ["", "Examples:"]
        lines += [
            f"Text: {' '.join(text[:300].split())}\nLabel: {label}" for text, label in examples
        ]
    return "\n".join(lines)


def request_for(spec: Spec, text: str, model: str) -> ChatRequest:
    return ChatRequest(
        model=model,
        messages=[
            {"role": "system", "content": spec.system},
            {"role": "user", "content": f"Text: {text[:LONGEST_TEXT]}"},
        ],
        max_tokens=spec.max_tokens,
        params={"temperature": 0.0, "seed": 0},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "label", "strict": True, "schema": spec.schema},
        },
    )


def row_tokens(data: dict[str, Any], facts: Mapping[str, Any]) -> int:
    """At most: four characters a token is what English needs, three is on the safe side."""
    spec = Spec.read(data)
    return (len(spec.system) + LONGEST_TEXT) // 3 + spec.max_tokens + plan(facts).room


async def label_row(work: Work, context: Context) -> Outcome:
    """A row, by the pump's rules: `apps.batch.handlers.Handler`.

    Raises:
        LLMError: the server did not answer in full.
    """
    spec = context.once(Spec.read)
    text = str(work.input["text"])
    thinking = context.once(_thinking)
    thinking.facts = context.facts
    request = request_for(spec, text, context.model)
    completion = await thinking.ask(partial(work.draft.complete, context.client), request)
    if unfinished := _unfinished(completion, spec.max_tokens):
        return Outcome(
            Verdict.REJECTED,
            raw=completion.text,
            code=UNFINISHED,
            reason=unfinished,
            usage=completion.usage,
            prompt=text[:LONGEST_TEXT],
        )
    label, confidence, problem = read_answer(completion.text, spec.labels)
    return Outcome(
        Verdict.REJECTED if problem else Verdict.ACCEPTED,
        output=None if problem else {"label": label, "confidence": confidence},
        raw=completion.text,
        code="invalid" if problem else "",
        reason=problem,
        usage=completion.usage,
        prompt=text[:LONGEST_TEXT],
    )


def _thinking(data: dict[str, Any]) -> Thinking:
    return Thinking()


def _unfinished(completion: Completion, max_tokens: int) -> str:
    """Why an answer was not finished, as a sentence: no label was chosen then, not a wrong one."""
    if nothing := problem_of(completion, max_tokens):
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
    except ValueError:
        return "", 0.0, "The answer is no JSON."
    if not isinstance(data, dict) or data.get("label") not in labels:
        return "", 0.0, "The answer holds none of the labels."
    confidence = data.get("confidence")
    if not isinstance(confidence, int | float) or isinstance(confidence, bool):
        return "", 0.0, "The answer says nothing of how sure it is."
    return data["label"], min(1.0, max(0.0, confidence / 100)), ""
