"""Limits of waits that a machine which does much else exceeds, while all is well."""

from importlib import import_module

PATIENCE = 120  # seconds
# What is given up after a few seconds: the modules, and the names of their limits.
LIMITS = {
    "apps.chat.answering.runner": ("STOP_SECONDS",),
    "apps.chat.attachments.image_tokens": ("COUNT_SECONDS",),
    "apps.chat.attachments.receive": ("COUNT_SECONDS",),
    "apps.chat.knowledge.search": ("SECONDS",),
    "apps.chat.tools.fetching": ("CONNECT_SECONDS", "SECONDS"),
    "apps.classifiers.prediction.label_guesses": ("PATIENCE_S",),
    "apps.core.sandbox": ("PATIENCE_SECONDS",),
    "apps.llm.permits.acquire": ("REDIS_SECONDS",),
    "apps.llm.timeouts": ("CONNECT_SECONDS", "NATIVE_SECONDS"),
    "apps.mcp.connection": ("CONNECT_SECONDS",),
    "apps.mcp.discovery": ("REFRESH_SECONDS",),
    "apps.runtime.redis": ("COMMAND_SECONDS",),
    "apps.servers.pages.probe_result": ("SECONDS",),
    "apps.servers.probing.refresh": ("PROBE_SECONDS",),
    "apps.servers.probing.refresh_lock": ("LOCK_SECONDS",),
    "apps.servers.slot_files.prompts": ("RESTORE_SECONDS",),
    "apps.servers.slots.hold_slot": ("READ_SECONDS",),
}


def be_patient() -> None:
    """Let everything of this process wait longer, in all tests; those of a limit set their own."""
    for name, limits in LIMITS.items():
        module = import_module(name)
        for limit in limits:
            assert getattr(module, limit) < PATIENCE, f"{name}.{limit}"
            setattr(module, limit, PATIENCE)
