"""An address and a key: all a client needs to know of a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is. `base_url` ends in /v1, as the OpenAI SDK wants it."""

    base_url: str
    api_key: str = field(default="", repr=False)
    server: int | None = field(default=None, compare=False)
    """Its number, where what is learned of it is to be kept."""
    tells_progress: bool = field(default=True, compare=False)
    """Whether it is asked how far it is in a prompt: a field of llama.cpp's own."""
    refuses: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """By model: fields that it has refused."""

    @property
    def root(self) -> str:
        """Where the server's native routes are."""
        return self.base_url.rstrip("/").removesuffix("/v1")
