"""Projects over HTTP."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.chat.conversations import projects
from apps.chat.lookups import get_preset, get_project, get_server
from apps.chat.models import Project
from apps.core.api import Page, owner, page

router = Router()


class ProjectIn(Schema):
    name: str = Field(min_length=1, max_length=projects.NAME_LENGTH)
    instructions: str = Field("", max_length=projects.MAX_INSTRUCTIONS)
    server: int | None = None
    model: str = Field("", max_length=300)
    preset: int | None = None


class ProjectPatch(Schema):
    name: str | None = Field(None, min_length=1, max_length=projects.NAME_LENGTH)
    instructions: str | None = Field(None, max_length=projects.MAX_INSTRUCTIONS)
    server: int | None = None
    model: str | None = Field(None, max_length=300)
    preset: int | None = None


class ProjectOut(Schema):
    id: int
    name: str
    instructions: str
    """The system prompt of new conversations in it."""
    server: int | None
    model: str
    preset: int | None
    documents: int
    created: datetime


def project_out(project: Project) -> ProjectOut:
    count = vars(project).get("document_count")
    return ProjectOut(
        id=project.pk,
        name=project.name,
        instructions=project.system_prompt.text if project.system_prompt else "",
        server=project.server_id,
        model=project.model,
        preset=project.preset_id,
        documents=project.documents.count() if count is None else count,
        created=project.created,
    )


@router.get("/projects", response=Page[ProjectOut])
def list_projects(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    mine: QuerySet[Project] = Project.objects.owned_by(owner(request))
    found = mine.select_related("system_prompt").annotate(document_count=Count("documents"))
    return page(found, project_out, limit=limit, after=after)


@router.post("/projects", response={201: ProjectOut})
def create_project(request: HttpRequest, data: ProjectIn) -> Any:
    """Create a project: a folder of conversations with instructions, a model and documents."""
    settings = _settings(request, data)
    with transaction.atomic():
        project = projects.create(owner(request), data.name)
        projects.change(project, **settings)
    return Status(201, project_out(project))


@router.get("/projects/{int:pk}", response=ProjectOut)
def read_project(request: HttpRequest, pk: int) -> Any:
    return project_out(get_project(request, pk))


@router.patch("/projects/{int:pk}", response=ProjectOut)
def change_project(request: HttpRequest, pk: int, data: ProjectPatch) -> Any:
    """Change the fields that you pass. Conversations keep the settings they have."""
    project = get_project(request, pk)
    projects.change(project, **_settings(request, data))
    return project_out(project)


@router.delete("/projects/{int:pk}", response={204: None})
def delete_project(request: HttpRequest, pk: int) -> Any:
    """Delete a project and its documents. Its conversations are kept."""
    get_project(request, pk).delete()
    return Status(204, None)


def _settings(request: HttpRequest, data: ProjectIn | ProjectPatch) -> dict[str, Any]:
    given: dict[str, Any] = data.model_dump(exclude_unset=True)
    if "server" in given:
        given["server"] = get_server(given["server"])
    if "preset" in given:
        preset = get_preset(request, given["preset"])
        given["preset"] = preset if preset.pk else None
    return {name: value for name, value in given.items() if value is not None or name in CLEARED}


CLEARED = {"server", "preset"}  # null sets them to nothing; elsewhere it changes nothing
