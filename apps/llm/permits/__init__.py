"""Permits: one request's right to one slot of a model server. The door of this folder."""

from apps.llm.permits.acquire import permit
from apps.llm.permits.model_waits import ModelWait, read_model_waits
from apps.llm.permits.occupancy import (
    BUCKET_SECONDS,
    Occupancy,
    PermitInfo,
    UsageBucket,
    announce_person,
    busy_slots,
    permits_in_flight,
    read_occupancy,
    recent_models_of_people,
    usage_history,
)
from apps.llm.permits.permit import Permit
from apps.llm.permits.refusals import back_off
from apps.llm.permits.terms import (
    RECOVER_SECONDS,
    Lane,
    ModelInUse,
    NoSlot,
    SlotRequest,
    SlotTaken,
    SlotTerms,
)
from apps.llm.permits.totals import (
    FIRST_TOKEN_BOUNDS_MS,
    PROMPT_TOKEN_BOUNDS,
    Counts,
    Load,
    read_loads,
    read_prefill_rate,
    read_totals,
)
from apps.llm.permits.wait_reason import (
    batch_wait_reason,
    describe_backoff,
    describe_batch_wait,
)

__all__ = [
    "BUCKET_SECONDS",
    "FIRST_TOKEN_BOUNDS_MS",
    "PROMPT_TOKEN_BOUNDS",
    "RECOVER_SECONDS",
    "Counts",
    "Lane",
    "Load",
    "ModelInUse",
    "ModelWait",
    "NoSlot",
    "Occupancy",
    "Permit",
    "PermitInfo",
    "SlotRequest",
    "SlotTaken",
    "SlotTerms",
    "UsageBucket",
    "announce_person",
    "back_off",
    "batch_wait_reason",
    "busy_slots",
    "describe_backoff",
    "describe_batch_wait",
    "permit",
    "permits_in_flight",
    "read_loads",
    "read_model_waits",
    "read_occupancy",
    "read_prefill_rate",
    "read_totals",
    "recent_models_of_people",
    "usage_history",
]
