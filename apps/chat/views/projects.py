"""Projects: the list of them, and the page of one."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from apps.chat.conversation_list import list_rows
from apps.chat.conversations import projects
from apps.chat.conversations.projects import BadProject
from apps.chat.lookups import get_project
from apps.chat.models import Preset, Project
from apps.chat.presets import model_choices
from apps.chat.views.chat_list import local_now, sidebar_context
from apps.chat.views.documents import list_context
from apps.chat.views.lookups import get_preset
from apps.core.api import owner

SHOWN_CHATS = 100


@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """Render the form of a new project, or on POST create it."""
    context = {"name": request.POST.get("name", ""), "error": ""}
    if request.method == "POST":
        try:
            return redirect("chat:project", projects.create(owner(request), context["name"]).pk)
        except BadProject as error:
            context["error"] = str(error)
    status = 422 if context["error"] else 200
    return render(
        request, "chat/projects/new.html", sidebar_context(request) | context, status=status
    )


@require_http_methods(["GET", "HEAD", "POST"])
def project(request: HttpRequest, pk: int) -> HttpResponse:
    """Render a project, or on POST save its settings."""
    found = get_project(request, pk)
    error = ""
    if request.method == "POST":
        try:
            _save(request, found)
            messages.success(request, "Saved.")
            return redirect("chat:project", pk)
        except (BadProject, model_choices.ModelNotAvailable) as problem:
            error = str(problem)
    user = owner(request)
    context = (
        sidebar_context(request, project=found)
        | list_context(found)
        | {
            "project": found,
            "error": error,
            "presets": Preset.objects.owned_by(user),
            "servers": model_choices.list_models(keep=found.server_id),
            "key": model_choices.key_of(found.server_id, found.model),
            "chats": list_rows.read_rows(
                user, now=local_now(request), length=SHOWN_CHATS, project=pk, grouped=False
            ),
        }
    )
    return render(request, "chat/projects/project.html", context, status=422 if error else 200)


def _save(request: HttpRequest, found: Project) -> None:
    server, model = model_choices.parse_key(request.POST.get("model", ""))
    preset = get_preset(request, request.POST.get("preset", ""))
    projects.change(
        found,
        name=request.POST.get("name", ""),
        instructions=request.POST.get("instructions", "")[: projects.MAX_INSTRUCTIONS],
        server=server,
        model=model,
        preset=preset if preset.pk else None,
    )


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a project. Its conversations are kept, outside of any project."""
    found = get_project(request, pk)
    found.delete()
    messages.success(request, f"Project “{found}” deleted. Its chats are kept.")
    return redirect("chat:index")
