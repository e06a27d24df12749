"""What another room provides to this one: it registers once, when it starts."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

HOURS = 24
"""The time before now that `Traffic` covers."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """What drafts (speculative decoding) came to."""

    drafted: int = 0
    """Tokens that were proposed."""
    accepted: int = 0
    written: int = 0
    """Generated tokens of the answers that had drafts, the accepted ones included."""

    def __add__(self, other: "Drafts") -> "Drafts":
        return Drafts(
            self.drafted + other.drafted,
            self.accepted + other.accepted,
            self.written + other.written,
        )

    @property
    def steps(self) -> int:
        """Passes of the model: each writes one token beside those that it accepts."""
        return self.written - self.accepted


NO_DRAFTS = Drafts()


@dataclass(frozen=True, slots=True)
class Cuts:
    """Requests that something between Workbench and the server ended."""

    requests: int = 0
    age: int = 0
    """The sum of their ages, in hundredths of a second."""
    squared_age: int = 0

    @property
    def mean(self) -> float:
        """Seconds."""
        return self.age / self.requests / 100 if self.requests else 0.0

    @property
    def spread(self) -> float:
        """Standard deviation, in seconds."""
        if not self.requests:
            return 0.0
        mean = self.age / self.requests
        return math.sqrt(max(0.0, self.squared_age / self.requests - mean**2)) / 100


NO_CUTS = Cuts()


@dataclass(frozen=True, slots=True)
class Speeds:
    """Generated tokens per second of one answer, one number an hour."""

    now: tuple[float, ...] = ()
    """Of the last `HOURS`."""
    before: tuple[float, ...] = ()
    """Of the seven days before them."""
    busy_now: float = 0.0
    """Busy slots on average in these hours."""
    busy_before: float = 0.0

    @property
    def is_busier(self) -> bool:
        """True if more requests at once may be why each answer is slower."""
        return self.busy_now > 1.25 * self.busy_before


NO_SPEEDS = Speeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Swaps:
    """How often a server loaded models, as far as that was seen."""

    loads: int = 0
    most: int = 0
    """In ten minutes."""
    requests: int = 0
    """To all its models, in the stretches of five minutes in which it loaded some."""
    seconds: float | None = None
    """Until the first token, the mean of these requests; None: not measured."""
    usual_seconds: float | None = None
    """The same of all other requests."""
    models: tuple[str, ...] = ()
    """Those that were asked, the most asked first."""


NO_SWAPS = Swaps()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """How long the prompts were that came."""

    requests: int = 0
    """Those whose tokens were counted, the refused included."""
    usual: int = 0
    """Tokens that 95 % of them had at most."""
    largest: int = 0
    """Tokens that none of them had more of."""
    cut: int = 0
    """Those of which earlier messages were left out, so that they fit."""
    refused: int = 0
    """Those that were refused as too long."""


NO_PROMPTS = Prompts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What requests through Workbench to one model came to in the last `HOURS`."""

    ended: int = 0
    """Answers of chats and programs of which it is known how they ended."""
    only_thought: int = 0
    """Those of them whose max tokens were used up by their thought."""
    written: int = 0
    """Generated tokens."""
    prompts: Prompts = NO_PROMPTS
    drafts: Drafts = NO_DRAFTS
    cuts: Cuts = NO_CUTS
    speeds: Speeds = NO_SPEEDS
    swaps: Swaps = NO_SWAPS
    """Of the whole server."""
    gpu_memory: int | None = None
    """MiB in use on all GPUs of the server's machine, the most of the last minutes; None: not
    reported."""


NO_TRAFFIC = Traffic()
ByModel = Mapping[tuple[int, str], Traffic]
"""By the primary key of a server and the ID of a model; "": of models without an entry."""
TrafficReader = Callable[[Iterable[int]], ByModel]
"""Takes the servers' primary keys. Blocks."""

_readers: list[TrafficReader] = []


def register_traffic(reader: TrafficReader) -> None:
    _readers[:] = [reader]


def read_traffic(servers: Iterable[int]) -> ByModel:
    """The traffic that was recorded; a model without any may be left out. Blocks."""
    return _readers[0](servers) if _readers else {}


def traffic_of(recorded: ByModel, server: int, model: str) -> Traffic:
    return recorded.get((server, model)) or recorded.get((server, ""), NO_TRAFFIC)
