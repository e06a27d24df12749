"""Presets, system prompts and tools over HTTP."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.chat.api.schemas import ToolsIn
from apps.chat.lookups import get_preset, get_prompt, get_server
from apps.chat.models import Preset, SamplingParams, SystemPrompt
from apps.chat.presets import presets, system_prompts
from apps.chat.prompt import response_format
from apps.core import tools
from apps.core.api import Page, owner, page
from apps.core.tools import Approval, Tool

router = Router()


class SystemPromptIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1)


class SystemPromptOut(Schema):
    id: int
    name: str
    version: int
    text: str


class PresetIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    server: int | None = None
    model: str = Field("", max_length=300)
    system_prompt: int | None = None
    params: SamplingParams | None = None
    response_format: dict[str, Any] | None = None
    tools: ToolsIn | None = None
    """Without them, a conversation that the preset is applied to keeps its own."""


class PresetOut(Schema):
    id: int
    name: str
    server: int | None
    model: str
    system_prompt: int | None
    params: dict[str, Any]
    response_format: dict[str, Any]
    tools: dict[str, Any] | None

    @staticmethod
    def resolve_tools(preset: Preset) -> dict[str, Any] | None:
        return preset.tool_settings.to_public_json() if preset.tool_settings else None

    @staticmethod
    def resolve_server(preset: Preset) -> int | None:
        return preset.server_id

    @staticmethod
    def resolve_system_prompt(preset: Preset) -> int | None:
        return preset.system_prompt_id


class ToolOut(Schema):
    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    approval: Approval

    @staticmethod
    def resolve_approval(tool: Tool) -> Approval:
        return Approval(tool.default)


@router.get("/system-prompts", response=Page[SystemPromptOut])
def list_system_prompts(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    """List the newest version of each system prompt."""
    system_prompts.list_system_prompts(owner(request))
    prompts = SystemPrompt.objects.owned_by(owner(request)).latest_versions()
    return page(prompts, lambda prompt: prompt, limit=limit, after=after)


@router.post("/system-prompts", response={201: SystemPromptOut})
def save_system_prompt(request: HttpRequest, data: SystemPromptIn) -> Any:
    """Save a system prompt. A changed text creates a new version; conversations keep theirs."""
    prompt = system_prompts.save_system_prompt(owner=owner(request), name=data.name, text=data.text)
    return Status(201, prompt)


@router.get("/presets", response=Page[PresetOut])
def list_presets(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine = Preset.objects.owned_by(owner(request))
    return page(mine, lambda preset: preset, limit=limit, after=after)


@router.post("/presets", response={201: PresetOut})
def save_preset(request: HttpRequest, data: PresetIn) -> Any:
    """Create a preset, or update the one with this name."""
    preset = presets.save(
        owner=owner(request),
        name=data.name,
        server=get_server(data.server),
        model=data.model,
        system_prompt=get_prompt(request, data.system_prompt),
        params=data.params or SamplingParams(),
        response_format=response_format.check(data.response_format),
        tools=None if data.tools is None else data.tools.checked(owner(request).pk),
    )
    return Status(201, preset)


@router.delete("/presets/{pk}", response={204: None})
def delete_preset(request: HttpRequest, pk: int) -> Any:
    """Delete a preset. Conversations keep their settings."""
    get_preset(request, pk).delete()
    return Status(204, None)


@router.get("/tools", response=list[ToolOut])
def list_tools(request: HttpRequest) -> Any:
    """Tools a model can call. `approval` is the default: always, ask or never."""
    return tools.available(owner(request).pk)
