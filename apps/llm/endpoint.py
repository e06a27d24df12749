"""The address and key of a model server, and the facts about it that a client needs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Two endpoints with the same address and key share a client. `base_url` ends in /v1."""

    base_url: str
    api_key: str = field(default="", repr=False)
    tells_progress: bool = field(default=True, compare=False)
    """Whether to ask for the progress of prompt processing: a field of llama.cpp's own."""
    refuses: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """By model: the request fields that it refuses."""
    on_refused: Callable[[str, frozenset[str]], Awaitable[None]] | None = field(
        default=None, compare=False, repr=False
    )
    """Called with a model and all the fields that it was found to refuse, to store them."""

    @property
    def root(self) -> str:
        """The address of the server's own routes."""
        return self.base_url.rstrip("/").removesuffix("/v1")
