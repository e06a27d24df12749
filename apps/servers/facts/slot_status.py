"""One entry of llama-server's /slots (pure)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """The server's own report about one slot; None where it does not report a value."""

    id: int
    busy: bool = False
    model: str = ""
    task: int = 0
    """Rises with every request the server takes."""
    context: int | None = None
    held: int | None = None
    """Tokens in the slot's cache so far: of the prompt, later of prompt and answer."""
    cached_tokens: int | None = None
    decoded: int | None = None
    remain: int | None = None
    """Tokens it may still generate; -1 or None where nobody set an end."""

    @classmethod
    def parse(cls, entry: Mapping[str, Any], index: int, model: str) -> Self:
        """An entry of /slots. `index` stands for the id where the server gives none."""
        progress = (entry.get("next_token") or [{}])[0] or {}
        return cls(
            id=entry.get("id", index),
            busy=bool(entry.get("is_processing")),
            model=model,
            task=entry.get("id_task") or 0,
            context=entry.get("n_ctx"),
            held=entry.get("n_prompt_tokens"),
            cached_tokens=entry.get("n_prompt_tokens_cache"),
            decoded=progress.get("n_decoded"),
            remain=progress.get("n_remain"),
        )

    @property
    def prompt_tokens(self) -> int | None:
        """The tokens held that are part of the prompt."""
        return self.held - self.decoded if self.held and self.decoded else self.held

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**stored)
