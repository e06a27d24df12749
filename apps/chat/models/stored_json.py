"""The JSON columns as dataclasses: each class reads and writes its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from apps.llm.thinking import Effort, StoredThinking


class SamplingParams(BaseModel):
    """Sampling, as llama-server and the OpenAI API name it. Unknown names are refused."""

    model_config = ConfigDict(extra="forbid")

    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    stop: list[str] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repeat_penalty: Annotated[float, Field(ge=0, le=10)] | None = None
    repeat_last_n: Annotated[int, Field(ge=-1)] | None = None
    dry_multiplier: Annotated[float, Field(ge=0, le=10)] | None = None
    dry_base: Annotated[float, Field(ge=1, le=10)] | None = None
    dry_allowed_length: Annotated[int, Field(ge=0, le=1000)] | None = None
    thinking: StoredThinking | None = None
    """"default", "off", "on", or a budget in tokens."""
    reasoning_effort: Effort | None = None
    reasoning_budget_tokens: Annotated[int, Field(ge=-1)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SamplingParams":
        """Read stored parameters. They were validated when they were set, so not again."""
        return cls.model_construct(**data)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters that are set, as they are stored and sent."""
        return self.model_dump(exclude_none=True)

    def updated_by(self, other: "SamplingParams") -> "SamplingParams":
        """Return these parameters with those that `other` sets."""
        mine, new = self.to_json(), other.to_json()
        if not new.keys().isdisjoint({"reasoning_budget_tokens", "chat_template_kwargs"}):
            mine.pop("thinking", None)  # the server's own fields say it now
        return self.from_json(mine | new)


ROUNDS = 8
MAX_ROUNDS = 50


@dataclass(frozen=True)
class ToolSettings:
    """Approvals by tool name and limits. `Conversation.tools` holds its JSON."""

    use: Mapping[str, str] = field(default_factory=dict)
    """The approval (always, ask) of each tool that is not off."""
    allowed: Mapping[str, str] = field(default_factory=dict)
    """The fingerprint of the definition that somebody always allowed."""
    rounds: int = ROUNDS
    parallel: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ToolSettings":
        return cls(
            use=data.get("use") or {},
            allowed=data.get("allowed") or {},
            rounds=data.get("rounds") or ROUNDS,
            parallel=data.get("parallel", True),
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what differs from the default."""
        data: dict[str, Any] = {"use": dict(sorted(self.use.items()))} if self.use else {}
        if self.allowed:
            data["allowed"] = dict(sorted(self.allowed.items()))
        if self.rounds != ROUNDS:
            data["rounds"] = self.rounds
        if not self.parallel:
            data["parallel"] = False
        return data

    def to_public_json(self) -> dict[str, Any]:
        """Return what the API shows. Fingerprints are our own business."""
        return {name: value for name, value in self.to_json().items() if name != "allowed"}


@dataclass(frozen=True)
class AnswerSettings:
    """Settings that replace the conversation's for one answer, when two are compared."""

    server: int | None = None
    model: str = ""
    system_prompt: int | None = None
    params: SamplingParams = field(default_factory=SamplingParams)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AnswerSettings":
        params = SamplingParams.from_json(data["params"])
        return cls(data["server"], data["model"], data["system_prompt"], params)

    def to_json(self) -> dict[str, Any]:
        return {
            "server": self.server,
            "model": self.model,
            "system_prompt": self.system_prompt,
            "params": self.params.to_json(),
        }


@dataclass(frozen=True)
class AnswerRequest:
    """Options of one answer. `Message.request` holds its JSON."""

    params: SamplingParams = field(default_factory=SamplingParams)
    response_format: Mapping[str, Any] | None = None
    tools: ToolSettings | None = None
    continues: int | None = None
    """The answer whose text this one begins with."""
    compared_with: int | None = None
    """The answer that stands next to this one."""
    settings: AnswerSettings | None = None
    preset: str = ""
    """Name of the preset that `settings` came from."""

    def without_other_answers(self) -> "AnswerRequest":
        """Return it for another answer to the same question."""
        return replace(self, continues=None, compared_with=None)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AnswerRequest":
        return cls(
            params=SamplingParams.from_json(data.get("params") or {}),
            response_format=data.get("response_format"),
            tools=ToolSettings.from_json(data["tools"]) if "tools" in data else None,
            continues=data.get("continues"),
            compared_with=data.get("beside"),
            settings=AnswerSettings.from_json(data["as"]) if data.get("as") else None,
            preset=data.get("preset", ""),
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what is set: queries ask whether a key is there."""
        data = {
            "params": self.params.to_json() or None,
            "response_format": self.response_format,
            "tools": None if self.tools is None else self.tools.to_json(),
            "continues": self.continues,
            "beside": self.compared_with,
            "as": None if self.settings is None else self.settings.to_json(),
            "preset": self.preset or None,
        }
        return {name: value for name, value in data.items() if value is not None}


@dataclass(frozen=True)
class PromptPrefix:
    """The start of a prompt before its messages, in addition to the system prompt.

    `Message.prompt_prefix` holds its JSON. A difference to the answer before explains why the
    server had to process the prompt again (`prompt.cache_loss`).
    """

    tools_hash: str = ""
    """SHA-256 of the definitions of tools, its first 16 hexadecimal digits."""
    summary: int | None = None
    pinned: tuple[int, ...] | None = None
    """Pinned messages in the place of cut ones; None if there were none."""
    front_bytes: int = 0
    """Size of the summary and the pinned messages."""
    left_out: frozenset[int] = frozenset()
    """Tool results that had to make room."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PromptPrefix":
        return cls(
            tools_hash=data.get("tools", ""),
            summary=data.get("summary"),
            pinned=tuple(data["pinned"]) if "pinned" in data else None,
            front_bytes=data.get("front", 0),
            left_out=frozenset(data.get("left_out", ())),
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what is not empty."""
        data = {
            "tools": self.tools_hash,
            "summary": self.summary,
            "pinned": None if self.pinned is None else list(self.pinned),
            "front": self.front_bytes,
            "left_out": sorted(self.left_out),
        }
        data = {name: value for name, value in data.items() if value or name == "pinned"}
        return {name: value for name, value in data.items() if value is not None}
