"""Sampling parameters: the one list the API, the pages and the presets share. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import ConfigDict, ValidationError


class Params(Schema):
    """Sampling, as llama-server and the OpenAI API name it. Unknown names are refused."""

    model_config = ConfigDict(extra="forbid")

    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    stop: list[str] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repeat_penalty: Annotated[float, Field(ge=0, le=10)] | None = None
    repeat_last_n: Annotated[int, Field(ge=-1)] | None = None
    dry_multiplier: Annotated[float, Field(ge=0, le=10)] | None = None
    dry_base: Annotated[float, Field(ge=1, le=10)] | None = None
    dry_allowed_length: Annotated[int, Field(ge=0, le=1000)] | None = None
    reasoning_budget_tokens: Annotated[int, Field(ge=-1)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


@dataclass(frozen=True)
class Shown:
    """A parameter as the form shows it. `step` and limits are what the browser enforces too."""

    name: str
    label: str
    hint: str
    step: str
    lowest: str
    highest: str = ""

    @property
    def is_whole(self) -> bool:
        return self.step == "1"


SAMPLING = (
    Shown("temperature", "Temperature", "0 = always the most likely token", "any", "0", "10"),
    Shown(
        "min_p", "min_p", "Drop tokens below this fraction of the top probability", "any", "0", "1"
    ),
    Shown(
        "top_p",
        "top_p",
        "Keep the most likely tokens up to this total probability",
        "any",
        "0",
        "1",
    ),
    Shown("top_k", "top_k", "Keep only the k most likely tokens. 0 = off", "1", "0"),
    Shown("max_tokens", "Max tokens", "per answer", "1", "1", "1000000"),
    Shown("seed", "Seed", "Same seed, same answer. -1 = random", "1", "-1", "4294967295"),
)
REPETITION = (
    Shown("repeat_penalty", "Repeat penalty", "1 = off", "any", "0", "10"),
    Shown("repeat_last_n", "Repeat penalty window", "In tokens. -1 = whole context", "1", "-1"),
    Shown("dry_multiplier", "DRY multiplier", "0 = off, 0.8 is common", "any", "0", "10"),
    Shown(
        "dry_allowed_length",
        "DRY allowed length",
        "Repeats up to this many tokens are not penalised",
        "1",
        "0",
        "1000",
    ),
    Shown("presence_penalty", "Presence penalty", "0 = off", "any", "-2", "2"),
    Shown("frequency_penalty", "Frequency penalty", "0 = off", "any", "-2", "2"),
)
BUDGET = Shown("reasoning_budget_tokens", "Thinking budget", "tokens; 0 = off", "1", "-1")
NUMBERS = (*SAMPLING, *REPETITION, BUDGET)
THINKING = "enable_thinking"
MAX_STOPS = 16


class BadParams(ValueError):
    """What a person typed cannot be used. One sentence a field, by the field's name."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


def from_form(typed: Mapping[str, str]) -> dict[str, Any]:
    """Parameters from the fields of the form; an empty field leaves it to the server.

    Raises:
        BadParams
    """
    found: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for shown in NUMBERS:
        if text := typed.get(shown.name, "").strip():
            try:
                found[shown.name] = int(text) if shown.is_whole else float(text)
            except ValueError:
                kind = "a whole number" if shown.is_whole else "a number"
                errors[shown.name] = f"{shown.label} must be {kind}, not “{text[:20]}”."
    if stops := [line for line in typed.get("stop", "").splitlines() if line]:
        found["stop"] = stops
        if len(stops) > MAX_STOPS:
            errors["stop"] = (
                f"Up to {MAX_STOPS} stop sequences are allowed. You entered {len(stops)}."
            )
    if (thinking := typed.get("thinking")) in {"on", "off"}:
        found["chat_template_kwargs"] = {THINKING: thinking == "on"}
    errors = _out_of_range(found) | errors
    if errors:
        raise BadParams(errors)
    return found


def _out_of_range(found: dict[str, Any]) -> dict[str, str]:
    try:
        Params(**found)
    except ValidationError as invalid:
        return {str(e["loc"][0]): _sentence(str(e["loc"][0])) for e in invalid.errors()}
    return {}


def _sentence(name: str) -> str:
    shown = next((s for s in NUMBERS if s.name == name), None)
    if shown is None:
        return f"{name} is not valid."
    if shown.highest:
        return f"{shown.label} must be between {shown.lowest} and {shown.highest}."
    return f"{shown.label} must be at least {shown.lowest}."


def to_form(params: Mapping[str, Any]) -> dict[str, str]:
    """What the fields of the form show."""
    shown = {s.name: _as_text(params[s.name]) for s in NUMBERS if s.name in params}
    shown["stop"] = "\n".join(params.get("stop", []))
    thinking = (params.get("chat_template_kwargs") or {}).get(THINKING)
    shown["thinking"] = "" if not isinstance(thinking, bool) else "on" if thinking else "off"
    return shown


def merged(params: Mapping[str, Any], edited: dict[str, Any]) -> dict[str, Any]:
    """What the form says, over what a program has set that the form does not show."""
    kwargs = {k: v for k, v in (params.get("chat_template_kwargs") or {}).items() if k != THINKING}
    kwargs |= edited.get("chat_template_kwargs", {})
    kept = {**edited}
    kept.pop("chat_template_kwargs", None)
    return kept | ({"chat_template_kwargs": kwargs} if kwargs else {})


def _as_text(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
