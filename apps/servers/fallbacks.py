"""The server that stands in for the default of a use while that one does not answer."""

import numpy as np
from numpy.typing import NDArray

from apps.llm.errors import LLMError
from apps.llm.permits import Lane, ModelInUse, SlotTaken
from apps.runtime.async_db import in_db
from apps.servers.errors import FallbackRefused
from apps.servers.models import DefaultServer, Server, State, Use
from apps.servers.probing.refresh import refresh_server
from apps.servers.slots.hold_slot import hold_slot
from apps.servers.targets import Target, choose_target

TEXT = "The quick brown fox jumps over the lazy dog."
SAME_COSINE = 0.9999  # another quantisation gives less, another model far less


def fallback_target(use: Use, server: Server) -> Target | None:
    """Return what a use gets while its default server, which this must be, does not answer."""
    default = (
        DefaultServer.objects.select_related("fallback")
        .filter(use=use, server=server)
        .exclude(fallback=server)
        .first()
    )
    if default is None or default.fallback is None:
        return None
    return choose_target(default.fallback, default.fallback_model, use)


def fallback_notice(use: Use, server: Server | None = None) -> str:
    """The sentence for pages while a fallback stands in, by the last checks; "" if none does.

    Args:
        server: what the page uses; None: the default.
    """
    rows = DefaultServer.objects.select_related("server", "fallback")
    default = rows.filter(use=use, server__state=State.UNREACHABLE).first()
    if default is None or default.fallback is None or server not in {None, default.server}:
        return ""
    if default.fallback.state == State.UNREACHABLE:
        return ""
    return f"“{default.server}” does not answer. {use.label} come from “{default.fallback}”."


async def find_fallback(use: Use, server: Server) -> Target | None:
    """Like `fallback_target`, with fresh facts; None too if it does not answer either."""
    target = await in_db(fallback_target, use, server)
    if target is None:
        return None
    fallback = await refresh_server(target.server)
    if fallback.state == State.UNREACHABLE:
        return None
    model = "" if target.model == "default" else target.model  # it was not checked before
    return choose_target(fallback, model, use)


async def set_fallback(use: Use, server: Server | None, model: str = "") -> None:
    """Set the fallback of a use; None: it has none.

    Raises:
        FallbackRefused: it cannot stand in for the default.
    """
    rows = DefaultServer.objects.filter(use=use)
    if server is not None:
        default = await in_db(rows.select_related("server").first)
        if default is None:
            raise FallbackRefused("Set a default first: the fallback stands in for it.")
        own = choose_target(default.server, default.model, use)
        await _check_fallback(use, own, choose_target(server, model, use))
    await in_db(rows.update, fallback=server, fallback_model=model if server else "")


async def _check_fallback(use: Use, own: Target, other: Target) -> None:
    if other.server.base_url == own.server.base_url:
        raise FallbackRefused(
            f"The fallback has to be another server than the default, “{own.server}”."
        )
    if use != Use.EMBEDDINGS:
        return
    try:
        one, two = await _vector(own), await _vector(other)
    except (LLMError, ModelInUse, SlotTaken) as error:
        raise FallbackRefused(f"Both servers have to answer once, to compare them. {error}") from (
            error
        )
    if one.shape != two.shape or _cosine(one, two) < SAME_COSINE:
        raise FallbackRefused(
            f"“{other.server}” serves another embedding model than “{own.server}”: classifiers "
            "and searches cannot use its vectors. Choose a server with the same model."
        )


async def _vector(target: Target) -> NDArray[np.float32]:
    async with hold_slot(
        target.server, lane=Lane.INTERACTIVE, model=target.model, label="Model check"
    ):
        vectors = await target.client.embed(target.model, [TEXT])
    vector: NDArray[np.float32] = vectors[0]
    return vector


def _cosine(one: NDArray[np.float32], two: NDArray[np.float32]) -> float:
    return float(one @ two / max(float(np.linalg.norm(one) * np.linalg.norm(two)), 1e-12))
