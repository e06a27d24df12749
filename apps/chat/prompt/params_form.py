"""The form of sampling parameters: its fields, and what a person typed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from apps.chat.models.stored_json import SamplingParams
from apps.chat.prompt.thinking import setting_of, without_switches
from apps.llm.thinking import parse_thinking


@dataclass(frozen=True)
class ParamField:
    """A number field of the form. The browser enforces `step` and limits too."""

    name: str
    label: str
    hint: str
    step: str
    lowest: str
    highest: str = ""
    slider_to: str = ""
    """Highest value of its slider; "": it has none."""
    slider_step: str = "0.01"

    def tick(self, value: float) -> float | None:
        """Return where a value lies on the slider, 0 to 100."""
        if not self.slider_to:
            return None
        lowest, highest = float(self.lowest), float(self.slider_to)
        return round(100 * min(1.0, max(0.0, (value - lowest) / (highest - lowest))), 1)

    @property
    def is_whole(self) -> bool:
        return self.step == "1"


SAMPLING = (
    ParamField(
        "temperature",
        "Temperature",
        "0 = always the most likely token",
        "any",
        "0",
        "10",
        "2",
        "0.05",
    ),
    ParamField(
        "min_p",
        "Min-p",
        "Drop tokens below this fraction of the top probability",
        "any",
        "0",
        "1",
        "1",
    ),
    ParamField(
        "top_p",
        "Top-p",
        "Keep the most likely tokens up to this total probability",
        "any",
        "0",
        "1",
        "1",
    ),
    ParamField(
        "top_k", "Top-k", "Keep only the k most likely tokens. 0 = off", "1", "0", "", "100", "1"
    ),
    ParamField("max_tokens", "Max tokens", "Per answer, without its thinking", "1", "1", "1000000"),
    ParamField("seed", "Seed", "Same seed, same answer. -1 = random", "1", "-1", "4294967295"),
)
REPETITION = (
    ParamField("repeat_penalty", "Repeat penalty", "1 = off", "any", "0", "10", "2"),
    ParamField(
        "repeat_last_n", "Repeat penalty window", "In tokens. -1 = whole context", "1", "-1"
    ),
    ParamField("dry_multiplier", "DRY multiplier", "0 = off, 0.8 is common", "any", "0", "10", "2"),
    ParamField(
        "dry_allowed_length",
        "DRY allowed length",
        "Repeats up to this many tokens are not penalised",
        "1",
        "0",
        "1000",
    ),
    ParamField("presence_penalty", "Presence penalty", "0 = off", "any", "-2", "2", "2"),
    ParamField("frequency_penalty", "Frequency penalty", "0 = off", "any", "-2", "2", "2"),
)
NUMBERS = (*SAMPLING, *REPETITION)
MAX_STOPS = 16


class BadParams(ValueError):
    """Invalid fields: one sentence per field, by the field's name."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


def parse_form(typed: Mapping[str, str]) -> SamplingParams:
    """Return the parameters in the form. An empty field is left to the server.

    Raises:
        BadParams
    """
    found: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for number in NUMBERS:
        if text := typed.get(number.name, "").strip():
            try:
                found[number.name] = int(text) if number.is_whole else float(text)
            except ValueError:
                kind = "a whole number" if number.is_whole else "a number"
                errors[number.name] = f"{number.label} must be {kind}, not “{text[:20]}”."
    if stops := [line for line in typed.get("stop", "").splitlines() if line]:
        found["stop"] = stops
        if len(stops) > MAX_STOPS:
            errors["stop"] = (
                f"Up to {MAX_STOPS} stop sequences are allowed. You entered {len(stops)}."
            )
    if (thinking := typed.get("thinking") or "default") != "default":
        try:
            found["thinking"] = parse_thinking(thinking)
        except ValueError as error:
            errors["thinking"] = f"Thinking: {error}"
    errors = _out_of_range(found) | errors
    if errors:
        raise BadParams(errors)
    return SamplingParams(**found)


def _out_of_range(found: dict[str, Any]) -> dict[str, str]:
    try:
        SamplingParams(**found)
    except ValidationError as invalid:
        return {str(e["loc"][0]): _sentence(str(e["loc"][0])) for e in invalid.errors()}
    return {}


def _sentence(name: str) -> str:
    number = next((field for field in NUMBERS if field.name == name), None)
    if number is None:
        return f"{name} is not valid."
    if number.highest:
        return f"{number.label} must be between {number.lowest} and {number.highest}."
    return f"{number.label} must be at least {number.lowest}."


def form_values(params: SamplingParams) -> dict[str, str]:
    """Return the text of each field of the form."""
    stored = params.to_json()
    values = {n.name: _as_text(stored[n.name]) for n in NUMBERS if n.name in stored}
    values["stop"] = "\n".join(stored.get("stop", []))
    values["thinking"] = str(setting_of(params) or "off")
    return values


def merge(stored: SamplingParams, edited: SamplingParams) -> SamplingParams:
    """Return the form's parameters, with those of programs that it does not show."""
    kwargs = without_switches(stored.chat_template_kwargs or {})
    hidden = {"chat_template_kwargs": kwargs or None, "reasoning_effort": stored.reasoning_effort}
    return edited.model_copy(update=hidden)


def _as_text(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
