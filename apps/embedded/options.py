"""The settings of an embedded start, read once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from workbench import env

LOOPBACK = "127.0.0.1"
# Addresses to listen on, and where to connect instead.
ANY_ADDRESS = {"0.0.0.0": LOOPBACK, "": LOOPBACK, "::": "::1"}  # noqa: S104 - compared, not bound


@dataclass(frozen=True, kw_only=True)
class Options:
    root: Path
    """The repository."""
    data: Path
    host: str = LOOPBACK
    port: int = 8000
    public_origin: str = ""
    """Address in a browser, if not `host` and `port`."""
    database: Mapping[str, Any] = field(default_factory=dict)
    """One entry of Django's DATABASES."""
    redis_url: str = ""
    """Empty: start an embedded Redis."""
    llm_base_url: str = ""
    """Empty: start an embedded llama.cpp; the same for `embed_base_url`."""
    llm_api_key: str = ""
    embed_base_url: str = ""
    embed_api_key: str = ""
    chat_model: str = ""
    """GGUF files or owner/repo:file.gguf, with commas; empty: the default model."""
    embed_model: str = ""
    """A GGUF file, owner/repo:file.gguf, or empty for the default."""
    llama_server: str = ""
    """The llama.cpp for chat: a program, "bundled", or empty for what is on the PATH."""
    chat_slots: int = 4
    chat_context: int = 0
    """Tokens per slot; 0: as the model file suggests."""
    chat_flags: tuple[str, ...] = ()
    """Further flags of `llama-server`."""

    @property
    def secrets(self) -> Path:
        return self.data / "secrets"

    @property
    def llama_key_file(self) -> Path:
        return self.secrets / "llama-key"

    @property
    def models(self) -> Path:
        """The folder of downloaded models."""
        return self.data / "models"

    @property
    def log(self) -> Path:
        return self.data / "logs" / "workbench.log"

    @property
    def reachable_host(self) -> str:
        return ANY_ADDRESS.get(self.host, self.host)

    @property
    def address(self) -> str:
        """The URL to open in a browser."""
        if self.public_origin:
            return self.public_origin
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"http://{host}:{self.port}"


def from_settings() -> Options:
    return Options(
        root=settings.BASE_DIR,
        data=settings.DATA_DIR,
        host=env.text("WORKBENCH_HOST", LOOPBACK),
        port=settings.PORT,
        public_origin=settings.PUBLIC_ORIGIN,
        database=settings.DATABASES["default"],
        # Not the setting, which has a default: only a value that somebody set counts.
        redis_url=env.text("REDIS_URL"),
        llm_base_url=settings.LLM_BASE_URL,
        llm_api_key=settings.LLM_API_KEY,
        embed_base_url=settings.EMBED_BASE_URL,
        embed_api_key=settings.EMBED_API_KEY,
        chat_model=settings.CHAT_MODEL,
        embed_model=settings.EMBED_MODEL,
        llama_server=settings.LLAMA_SERVER,
        chat_slots=settings.CHAT_SLOTS,
        chat_context=settings.CHAT_CONTEXT,
        chat_flags=tuple(settings.CHAT_FLAGS),
    )
