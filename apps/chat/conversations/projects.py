"""Projects: creating and changing them, and what a new conversation takes from one."""

from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.chat.errors import ChatError
from apps.chat.models import Conversation, Preset, Project
from apps.chat.presets import presets, system_prompts

NAME_LENGTH = 100
MAX_PROJECTS = 200
MAX_INSTRUCTIONS = 100_000  # characters


class BadProject(ChatError):
    """A project cannot be saved so. The message says why."""

    code = "bad_project"


def create(owner: User, name: str) -> Project:
    """Create a project.

    Raises:
        BadProject: no name, a name that is taken, or too many projects.
    """
    if Project.objects.owned_by(owner).count() >= MAX_PROJECTS:
        raise BadProject(f"You have {MAX_PROJECTS} projects. That is the limit.")
    project = Project(owner=owner, name=_checked_name(name))
    _save(project)
    return project


def change(project: Project, **changed: Any) -> None:
    """Set fields of a project and save them.

    Args:
        changed: name, preset, server and model as the model has them; instructions, a text.

    Raises:
        BadProject: no name, or one that is taken.
    """
    if "name" in changed:
        changed["name"] = _checked_name(changed["name"])
    if "instructions" in changed:
        text = changed.pop("instructions").strip()
        name = changed.get("name", project.name)
        changed["system_prompt"] = (
            system_prompts.save_system_prompt(owner=project.owner, name=name, text=text)
            if text
            else None
        )
    for key, value in changed.items():
        setattr(project, key, value)
    _save(project)
    if (draft := Conversation.drafts.filter(draft_project=project).first()) is not None:
        reset_draft(project, draft)


def as_preset(project: Project) -> Preset:
    """Return what a new conversation of a project starts with, as a preset that is not stored."""
    base = project.preset or Preset()
    chosen = project if project.server is not None else base
    return Preset(
        server=chosen.server,
        model=chosen.model,
        system_prompt=project.system_prompt or base.system_prompt,
        params=base.params,
        response_format=base.response_format,
        tools=base.tools,
    )


def reset_draft(project: Project, draft: Conversation) -> None:
    """Give the draft of a project's next chat the settings of the project."""
    draft.server, draft.model, draft.system_prompt = None, "", None
    draft.params, draft.response_format, draft.preset = {}, {}, project.preset
    if project.preset is not None:
        presets.apply(project.preset, draft)
    if project.server is not None:
        draft.server, draft.model = project.server, project.model
    draft.system_prompt = project.system_prompt or draft.system_prompt
    draft.save()


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise BadProject("Enter a project name.")
    if len(name) > NAME_LENGTH:
        raise BadProject(f"The name has {len(name)} characters. The limit is {NAME_LENGTH}.")
    return name


def _save(project: Project) -> None:
    try:
        with transaction.atomic():
            project.save()
    except IntegrityError:
        raise BadProject(f"You already have a project “{project.name}”.") from None
