"""What a sweep measures, the most useful first (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass

# Tokens of the prompts, where a slot has room for them.
LENGTHS = (256, 1024, 4096)
# The shorter prompts are these shares of the longest that fits.
SHARES = (16, 4, 1)
CHAT_TURNS = 4
# Tokens of the chat template and of the end that makes each prompt another one.
OVERHEAD_TOKENS = 64
FEWEST_TOKENS = 16
WHERE_CONTEXT_IS_UNKNOWN = 2048


@dataclass(frozen=True, slots=True)
class Load:
    """Requests that begin together, all alike."""

    width: int
    """Sequences at the same time."""
    prompt_tokens: int
    is_cached: bool = False
    """True if the server has processed all but the end of the prompts before."""
    is_json: bool = False
    """True if the answers follow a JSON schema."""

    @property
    def description(self) -> str:
        what = "1 sequence" if self.width == 1 else f"{self.width} sequences"
        kinds = ["cached" if self.is_cached else "uncached", *["JSON"] * self.is_json]
        return f"{what}, prompts of {self.prompt_tokens:,} tokens, {', '.join(kinds)}"


@dataclass(frozen=True, slots=True)
class Room:
    """What fits into a server: slots, and the tokens of one and of all of them."""

    slots: int
    context: int | None
    """Tokens per slot; None: not reported."""
    pool: int | None = None
    """Tokens that all sequences share; None: each slot has its own."""

    @property
    def longest_prompt(self) -> int:
        """Tokens of the longest prompt to try, which may be too few for any."""
        return (self.context or WHERE_CONTEXT_IS_UNKNOWN) * 3 // 4

    def fits(self, load: Load, answer_tokens: int) -> bool:
        tokens = load.prompt_tokens + OVERHEAD_TOKENS + answer_tokens
        is_short = self.context is None or tokens <= self.context
        return is_short and (self.pool is None or tokens * load.width <= self.pool)


def widths(slots: int) -> list[int]:
    """Return 1, 2, 4 ... and all slots."""
    powers = [2**power for power in range(slots.bit_length())]
    return sorted({*powers, slots})


def prompt_lengths(room: Room, answer_tokens: int) -> list[int]:
    """Return up to three lengths in tokens, ascending; none if a slot has no room for a prompt."""
    longest = room.longest_prompt - OVERHEAD_TOKENS - answer_tokens
    if longest >= LENGTHS[-1]:
        return list(LENGTHS)
    return sorted({longest // share for share in SHARES if longest // share >= FEWEST_TOKENS})


def plan_loads(room: Room, answer_tokens: int) -> list[Load]:
    """Return all loads that fit, in the order in which they are measured."""
    lengths = prompt_lengths(room, answer_tokens)
    if not lengths:
        return []
    found = [
        Load(width, length, cached, is_json)
        for length, cached, is_json in _kinds(lengths)
        for width in widths(room.slots)
    ]
    return [load for load in found if room.fits(load, answer_tokens)]


def _kinds(lengths: list[int]) -> Iterator[tuple[int, bool, bool]]:
    """Length, cached, JSON. What tells most comes first: time may be over before the end."""
    short, *longer = lengths
    middle = (longer or lengths)[0]
    yield short, False, False
    yield middle, True, False
    yield middle, True, True
    for length in longer:
        yield length, False, False
    for length in lengths:
        if length != middle:
            yield length, True, False
