"""The stored JSON of what an answer was requested with, in addition to its conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.chat.models.sampling import SamplingParams
from apps.chat.models.tool_settings import ToolSettings


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
