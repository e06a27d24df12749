"""What a stand-in was told to be, and what happened to it."""

import asyncio
import math
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.waiting import until


@dataclass
class Model:
    id: str
    slots: int = 4
    context: int = 4096
    loaded: bool = False
    sleeping: bool = False
    embeddings: bool = False
    downloaded: bool = False
    """The router got it from Hugging Face, and can delete it."""
    fails: bool = False
    """It cannot be loaded."""
    aliases: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    """llama-swap's `metadata:`."""
    ttl: int = 0
    command: str | None = None
    """llama-swap's `cmd:`; by default llama-server with -np and -c."""
    info: dict[str, Any] = field(default_factory=dict)
    """LiteLLM's `model_info`."""


@dataclass
class Config:
    upstream: str
    """Root address of the llama.cpp that answers."""
    upstream_key: str = ""
    embeddings_upstream: str = ""
    embeddings_key: str = ""
    models: list[Model] = field(default_factory=lambda: [Model("m", loaded=True)])
    models_at_once: int = 0
    """0: what the kind does by default."""
    load_seconds: float = 0.05
    """Since a load began; a change counts for one that goes on."""
    concurrency_limit: int = 10
    rate_per_minute: float = 100.0
    burst: int = 50
    refuses: bool = False
    """Questions, for a second each, as where the rate was exceeded by others."""
    header_seconds: float = 300.0
    api_key: str = ""
    dialect: str = "openai"
    tokens_per_second: float = 40.0
    refuses_above: int = 0
    is_uneven: bool = False
    """Answers are as long as asked for, or as short as half of that, by their seed."""
    reports_usage: bool = True
    outage: int = 0
    """The status that a proxy in front answers while the server is away; 0: it is there."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Config":
        return cls(**values | {"models": [Model(**model) for model in values["models"]]})


class LoadFailed(Exception):
    pass


class Memory:
    """Which models are in memory: loading, stopping, waiting for idle, as router and swap do."""

    def __init__(self, config: Config, at_once: int) -> None:
        self.config = config
        self.at_once = config.models_at_once or at_once
        self.state = {m.id: self._first_state(m) for m in config.models}
        self.used: dict[str, float] = defaultdict(float)
        self.in_flight: dict[str, int] = defaultdict(int)
        self.most: dict[str, int] = defaultdict(int)
        self.loads: list[dict[str, str]] = []
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()

    @staticmethod
    def _first_state(model: Model) -> str:
        return "sleeping" if model.sleeping else "loaded" if model.loaded else "unloaded"

    def model(self, name: str) -> Model | None:
        return next((m for m in self.config.models if name == m.id or name in m.aliases), None)

    async def ensure(self, model: Model, path: str) -> None:
        """Loads a model if it is not loaded, first making room for it."""
        if self.state[model.id] in {"loaded", "sleeping"}:
            self.state[model.id] = "loaded"
            return
        async with self._turn:
            if self.state[model.id] == "loaded":
                return
            await self._make_room()
            self.state[model.id] = "loading"
            self.loads.append({"model": model.id, "path": path})
            began = time.monotonic()
            await until(
                lambda: time.monotonic() - began >= self.config.load_seconds, within=math.inf
            )
            self.state[model.id] = "failed" if model.fails else "loaded"
        if model.fails:
            raise LoadFailed(model.id)

    async def _make_room(self) -> None:
        async with self._changed:
            while True:
                held = [m for m, state in self.state.items() if state in {"loaded", "sleeping"}]
                if len(held) < self.at_once:
                    return
                idle = [m for m in held if not self.in_flight[m]]
                if idle:
                    self.state[min(idle, key=lambda m: self.used[m])] = "unloaded"
                else:
                    await self._changed.wait()

    def unload(self, model: Model) -> None:
        self.state[model.id] = "unloaded"

    def begin(self, model: Model) -> None:
        self.used[model.id] = time.monotonic()
        self.in_flight[model.id] += 1
        self.most[model.id] = max(self.most[model.id], self.in_flight[model.id])

    async def end(self, model: Model) -> None:
        self.in_flight[model.id] -= 1
        async with self._changed:
            self._changed.notify_all()

    def change(self, config: Config) -> None:
        """Takes a new configuration; models that it has already stay as they are."""
        known = {m.id for m in self.config.models}
        self.config = config
        self.at_once = config.models_at_once or self.at_once
        for model in config.models:
            if model.id not in known:
                self.state[model.id] = self._first_state(model)

    def report(self) -> dict[str, Any]:
        return {
            "loads": self.loads,
            "most": dict(self.most),
            "state": self.state,
            "config": asdict(self.config),
        }
