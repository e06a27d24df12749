"""What all requests of a batch share, and what the pump has to know of them."""

from dataclasses import asdict, dataclass
from typing import Any

from apps.core.schemas.json_types import JsonObject, JsonValue
from apps.gateway.continuing.shape import can_continue
from apps.gateway.program_request import LANES
from apps.llm.permits import Lane
from apps.llm.thinking import ThinkingSupport

HANDLER = "gateway.batch"


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """What all requests of a batch share."""

    key_id: int
    endpoint: str
    max_tokens: int
    expires_at: float
    """Unix time."""
    lane: str = "batch"
    """A name of LANES, “batch” or “idle”."""
    own_model: str = ""
    """The model of the workbench itself that answers; "": a model server does."""

    def as_dict(self) -> JsonObject:
        return asdict(self)


def read_spec(stored: dict[str, Any]) -> BatchSpec:
    return BatchSpec(**stored)


def row_tokens(spec: BatchSpec, thinking: ThinkingSupport) -> int:
    return spec.max_tokens


def row_lane(spec: BatchSpec) -> Lane:
    return LANES[spec.lane]


def asks_for_slots(spec: BatchSpec) -> bool:
    return bool(spec.own_model)  # it may need none, or one for many of its texts


def loses_work(row: JsonValue, spec: BatchSpec) -> bool:
    body = row.get("body") if isinstance(row, dict) else None
    return not isinstance(body, dict) or not can_continue(spec.endpoint, body)
