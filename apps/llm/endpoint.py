"""An address and a key: all a client needs to know of a server."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is. `base_url` ends in /v1, as the OpenAI SDK wants it."""

    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def root(self) -> str:
        """Where the server's native routes are."""
        return self.base_url.rstrip("/").removesuffix("/v1")
