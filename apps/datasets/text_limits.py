"""How long a text may be: told by the room that knows the embedding model."""

from collections.abc import Callable
from dataclasses import dataclass

# English has about four characters a token, other languages fewer: an estimate, and said as one.
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class TextLimit:
    model: str
    tokens: int

    @property
    def characters(self) -> int:
        """Texts longer than this are probably over the limit."""
        return self.tokens * CHARACTERS_PER_TOKEN


Provider = Callable[[], TextLimit | None]
_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Called once, when the room that knows starts. `provider` must not use the network."""
    _providers[:] = [provider]


def text_limit() -> TextLimit | None:
    """None where no embedding model is known yet."""
    return _providers[0]() if _providers else None
