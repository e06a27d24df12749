"""The stored JSON of sampling parameters."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


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
        return self.from_json(self.to_json() | other.to_json())
