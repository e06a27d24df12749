"""The services of this room for others."""

from apps.servers.entries.configure import CHAT_SERVER, configure_servers
from apps.servers.errors import FallbackRefused, NoServer
from apps.servers.fallbacks import (
    fallback_notice,
    fallback_target,
    find_fallback,
    set_fallback,
)
from apps.servers.health import Health, aread_health, read_health
from apps.servers.loading.activities import ModelActivity, model_activities, start_action
from apps.servers.loading.load_model import (
    LOAD_SECONDS,
    Action,
    check_action,
    load_model,
    unload_model,
    warm_model,
)
from apps.servers.loading.progress import loading_progress
from apps.servers.models import Use
from apps.servers.observations import (
    forget_best_width,
    record_answer,
    record_best_width,
    record_error,
)
from apps.servers.pages.choices import parse_choice
from apps.servers.pages.findings import register_findings
from apps.servers.probing.refresh import FRESH_FOR, mark_stale, refresh_server
from apps.servers.retry import RetryPause, RetryPolicy
from apps.servers.same_model import ask_canary, model_difference, same_model_targets, share_models
from apps.servers.slot_files.prompts import MIN_TOKENS as KEPT_TOKENS
from apps.servers.slot_files.prompts import (
    drop_conversations,
    process_prompt,
    record_prompt,
    restore_prompt,
    source_of,
)
from apps.servers.slot_files.warm_slots import warm_slots
from apps.servers.slots.hold_slot import hold_slot, slot_terms
from apps.servers.slots.read_slots import read_slots
from apps.servers.slots.width_meter import WidthMeter
from apps.servers.targets import (
    Target,
    can_generate,
    choose_target,
    default_target,
    is_embedding_model,
    known_default,
    set_default,
)

# What other rooms use of this one.
__all__ = [
    "CHAT_SERVER",
    "FRESH_FOR",
    "KEPT_TOKENS",
    "LOAD_SECONDS",
    "Action",
    "FallbackRefused",
    "Health",
    "ModelActivity",
    "NoServer",
    "RetryPause",
    "RetryPolicy",
    "Target",
    "Use",
    "WidthMeter",
    "aread_health",
    "ask_canary",
    "can_generate",
    "check_action",
    "choose_target",
    "configure_servers",
    "default_target",
    "drop_conversations",
    "fallback_notice",
    "fallback_target",
    "find_fallback",
    "forget_best_width",
    "hold_slot",
    "is_embedding_model",
    "known_default",
    "load_model",
    "loading_progress",
    "mark_stale",
    "model_activities",
    "model_difference",
    "parse_choice",
    "process_prompt",
    "read_health",
    "read_slots",
    "record_answer",
    "record_best_width",
    "record_error",
    "record_prompt",
    "refresh_server",
    "register_findings",
    "restore_prompt",
    "same_model_targets",
    "set_default",
    "set_fallback",
    "share_models",
    "slot_terms",
    "source_of",
    "start_action",
    "unload_model",
    "warm_model",
    "warm_slots",
]
