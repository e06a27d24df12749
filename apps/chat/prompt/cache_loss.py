"""Lost prompt cache: the tokens that the server processed again, and the reason. Pure.

The prompt of a turn begins with the prompt before it and the answer to that. If the server
processes much of this again, the first token is late, and there is a reason that somebody can fix.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

# A loss is reported if less than this share of the reusable tokens was cached...
MIN_CACHED_SHARE = 0.5
# ...and processing the rest took more than a moment.
MIN_LOST_TOKENS = 256


@dataclass(frozen=True, slots=True)
class CachedRequest:
    """The request of one answer, and its cached tokens."""

    model: str
    system_prompt: int | None
    cut_before_message: int | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    at: datetime
    tools: str = ""
    """Hash of the tools that were offered."""
    front: tuple[object, ...] = ()
    """Summary and pinned messages that replaced what was cut."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Tokens that were processed again; the reason is the end of a sentence."""

    tokens: int
    reason: str


def find_loss(
    now: CachedRequest,
    before: CachedRequest | None,
    *,
    is_sibling: bool = False,
    others_with_same_prompt: bool = False,
    system_tokens: int = 0,
    sleeps_after: timedelta | None = None,
) -> Loss | None:
    """Return what the server processed again of a prompt it knew; None if that is little.

    Args:
        before: the answer before it in the branch, or its sibling if it was answered again.
        is_sibling: `before` answered the same question, so its answer is not in this prompt.
        others_with_same_prompt: other conversations with the same system prompt were answered in
            between.
        system_tokens: estimate for the system prompt.
        sleeps_after: idle time after which the model is unloaded, if known.
    """
    if before is None:
        return None
    known = before.prompt_tokens + (0 if is_sibling else before.completion_tokens)
    known = min(known, now.prompt_tokens)
    lost = known - now.cached_tokens
    if lost < MIN_LOST_TOKENS or now.cached_tokens >= MIN_CACHED_SHARE * known:
        return None
    return Loss(lost, _reason(now, before, others_with_same_prompt, system_tokens, sleeps_after))


def _reason(
    now: CachedRequest,
    before: CachedRequest,
    others_with_same_prompt: bool,
    system_tokens: int,
    sleeps_after: timedelta | None,
) -> str:
    if now.model != before.model:
        return f"another model answered: {now.model} instead of {before.model}"
    if now.cut_before_message != before.cut_before_message:
        return "the oldest messages were dropped to free context; later turns are fast again"
    if now.system_prompt != before.system_prompt:
        return "the system prompt changed, so everything after it was reprocessed"
    if now.tools != before.tools:
        return "the tools changed, so everything after them was reprocessed"
    if now.front != before.front:
        return "a pinned message or the summary changed, so everything after it was reprocessed"
    if sleeps_after is not None and now.at - before.at > sleeps_after:
        return "the model was unloaded in between"
    trap = others_with_same_prompt and now.cached_tokens <= max(2 * system_tokens, 64)
    if trap and now.cached_tokens > 0:
        return (
            "another chat with the same system prompt took the slot; "
            "start llama-server with -sps 0.5 to prevent this"
        )
    if now.cached_tokens == 0:
        return "the server restarted, or other requests pushed this chat out of the prompt cache"
    return "other requests took the slot, and the server's prompt cache (--cache-ram) was full"
