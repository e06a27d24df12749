"""GET /props of a llama-server, asked directly or through a router or llama-swap."""

import hashlib
import json
import re
from typing import Any

from apps.servers.facts.server_facts import ModelFacts
from apps.servers.kinds.listing import number

_THINKING = re.compile(
    r"enable_thinking|<think|reasoning_content|reasoning_effort|<\|channel\|>|\[THINK\]"
)
# Granite, DeepSeek V3.1 and Kimi test a variable of this name; others have messages with such a
# field, or a text with this word.
_OFF = re.compile(r"enable_thinking|\{%-?\s*(?:el)?if\s+(?:not\s+)?thinking\b(?!\s+in\b)")
_EFFORT = re.compile(r"reasoning_effort")
TEMPLATE = "its chat template"
SAMPLING = (
    "temperature",
    "min_p",
    "top_p",
    "top_k",
    "repeat_penalty",
    "repeat_last_n",
    "dry_multiplier",
    "dry_allowed_length",
    "presence_penalty",
    "frequency_penalty",
)


def learn(model: ModelFacts, props: dict[str, Any], source: str) -> None:
    """Add one model's /props to its facts."""
    modalities = props.get("modalities") or {}
    model.learn(
        source,
        slots=number(props.get("total_slots")),
        context=context_of(props),
        vision=_flag(modalities.get("vision")),
        audio=_flag(modalities.get("audio")),
        abilities={
            name.removeprefix("supports_"): value
            for name, value in (props.get("chat_template_caps") or {}).items()
            if isinstance(value, bool)
        },
        sampling=sampling_of(props),
        cache_key=cache_key(model, props),
    )
    template = props.get("chat_template")
    if isinstance(template, str) and template:
        model.learn(
            TEMPLATE,
            reasoning=bool(_THINKING.search(template)),
            thinking_switch=bool(_OFF.search(template) or _EFFORT.search(template)),
            thinking_off=bool(_OFF.search(template)),
        )


def context_of(props: dict[str, Any]) -> int | None:
    return number((props.get("default_generation_settings") or {}).get("n_ctx"))


def cache_key(model: ModelFacts, props: dict[str, Any]) -> str:
    """Return what tells this model, as it runs, from any other: 16 hexadecimal digits.

    The name of the file is part of it: a finetune has the shape of its base, and the server
    restores the cache of one into the other.
    """
    params = (props.get("default_generation_settings") or {}).get("params")
    told = [model.id, model.weights, params.get("lora") if isinstance(params, dict) else None]
    told += [props.get(name) for name in ("model_path", "model_ftype", "build_info")]
    told.append(props.get("chat_template"))
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def sampling_of(props: dict[str, Any]) -> dict[str, float]:
    """Return the default sampling parameters that it reports."""
    params = (props.get("default_generation_settings") or {}).get("params")
    if not isinstance(params, dict):
        return {}
    # Floats come as 0.800000011920929.
    return {
        name: round(value, 4)
        for name in SAMPLING
        if isinstance(value := params.get(name), int | float) and not isinstance(value, bool)
    }


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
