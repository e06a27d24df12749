"""Saves the KV cache of a slot to a file at the server, and restores it: llama-server's own routes.

They need a server with `--slot-save-path`. An action waits for as long as its slot works on a
request, and the server goes on with it when its caller has left: act on idle slots alone. A file of
other weights of the same shape is restored without complaint, so its name has to tell the weights.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from apps.llm import errors, timeouts
from apps.llm.client import Client

CANNOT = "The server cannot save slots. Start it with --slot-save-path."


@dataclass(frozen=True, slots=True)
class SavedSlot:
    """A file that the server wrote."""

    tokens: int
    size: int
    """Bytes."""


class SlotFiles:
    """The slot files of one model at its server.

    Args:
        upstream: goes before each path, where a proxy needs it: "/upstream/qwen".
    """

    def __init__(self, client: Client, model: str, upstream: str = "") -> None:
        self._client = client
        self._model = model
        self._upstream = upstream

    async def save(self, slot: int, name: str) -> SavedSlot:
        """Write what the slot holds into a file; one of that name is overwritten.

        Raises:
            LLMError: nothing was saved, as far as is known.
        """
        reply = await self._act(slot, "save", name)
        return SavedSlot(_count(reply, "n_saved"), _count(reply, "n_written"))

    async def restore(self, slot: int, name: str) -> int:
        """Put a file into the slot, in place of what it holds; return its tokens.

        Raises:
            BadRequest: no such file, or it does not fit model, context or cache; the slot is empty.
            LLMError: the server failed.
        """
        return _count(await self._act(slot, "restore", name), "n_restored")

    async def erase(self, slot: int) -> None:
        """Empty the slot. Its files stay.

        Raises:
            LLMError: the server failed.
        """
        await self._act(slot, "erase", "")

    async def is_supported(self) -> bool | None:
        """Return whether the server saves slots; None where it says neither.

        An action that does not exist is refused in two ways, and touches no slot.
        """
        try:
            await self._act(0, "none", "")
        except (errors.NotSupported, errors.UnknownModel):
            return False
        except errors.BadRequest as error:
            return True if "action" in str(error).lower() else None
        except errors.LLMError:
            return None
        return None

    async def _act(self, slot: int, action: str, name: str) -> dict[str, Any]:
        reply = await self._client.post(
            f"{self._upstream}/slots/{slot}?action={quote(action)}",
            {"filename": name, "model": self._model},  # a router needs the model
            seconds=timeouts.SLOT_FILE_SECONDS,
        )
        if not isinstance(reply, dict):
            raise errors.NotSupported(CANNOT)
        return reply


def _count(reply: dict[str, Any], name: str) -> int:
    value = reply.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise errors.NotSupported(CANNOT)
    return value
