"""Documents of a project: the list on its page, and the page that shows one's text."""

from typing import IO, Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.knowledge import cited
from apps.chat.knowledge import documents as services
from apps.chat.knowledge.documents import BadDocument
from apps.chat.lookups import get_document
from apps.chat.models import Project
from apps.chat.views.chat_list import sidebar_context
from apps.chat.views.lookups import get_answer
from apps.core.api import NotFound, get_owned


@require_http_methods(["GET", "HEAD", "POST"])
def documents(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the documents of a project, on POST with the uploaded files added."""
    project = get_owned(Project.objects.select_related("owner"), request, pk)
    errors = []
    if request.method == "POST":
        files = request.FILES.getlist("file")
        if not files:
            errors.append("Choose a file.")
        for file in files:
            try:
                services.add(project, file.name or "", cast(IO[bytes], file))
            except BadDocument as error:
                errors.append(str(error))
    return _render_list(request, project, errors)


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_document(request, pk)
    services.remove(found)
    return _render_list(request, found.project)


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_document(request, pk)
    services.retry(found)
    return _render_list(request, found.project)


@require_POST
def whole(request: HttpRequest, pk: int) -> HttpResponse:
    """Turn on or off that a document stands whole in the prompts of new chats."""
    found = get_document(request, pk)
    errors = []
    try:
        services.set_whole(found, request.POST.get("whole") == "on")
    except BadDocument as error:
        errors.append(str(error))
    return _render_list(request, found.project, errors)


@require_safe
def document(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the text of a document; `#passage-N` is the place of a citation."""
    found = get_document(request, pk)
    passages = found.passages.defer("vector")
    context = sidebar_context(request, project=found.project) | {
        "document": found,
        "passages": passages,
    }
    return render(request, "chat/projects/document.html", context)


@require_safe
def source(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Render a source of an answer for the side panel, with the way to those like it."""
    answer = get_answer(request, pk)
    sources = cited.sources_of(answer)
    if number not in {one.number for one in sources}:
        sources = cited.found_of(answer)
    at = next((at for at, one in enumerate(sources) if one.number == number), None)
    passage = None if at is None else cited.passage_of(answer, sources[at])
    if at is None or passage is None:
        raise NotFound("source")
    context = {
        "answer": answer,
        "passage": passage,
        "previous": sources[at - 1],
        "next": sources[(at + 1) % len(sources)],
        "count": len(sources),
    }
    return render(request, "chat/projects/_source.html", context)


def list_context(project: Project, errors: list[str] | None = None) -> dict[str, Any]:
    """Return what the list of documents is rendered of."""
    found = list(project.documents.all())
    return {
        "project": project,
        "documents": found,
        "errors": errors or [],
        "is_active": any(document.is_active for document in found),
    }


def _render_list(
    request: HttpRequest, project: Project, errors: list[str] | None = None
) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        return redirect("chat:project", project.pk) if not errors else _plain_error(errors)
    context = list_context(project, errors)
    return render(request, "chat/projects/_documents.html", context, status=422 if errors else 200)


def _plain_error(errors: list[str]) -> HttpResponse:
    return HttpResponse("\n".join(errors), status=422, content_type="text/plain; charset=utf-8")
