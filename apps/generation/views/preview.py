"""Rows and people from the model, while a recipe is edited."""

import asyncio
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from apps.core.quotas import limited
from apps.generation.previews.column_marks import column_marks
from apps.generation.previews.known_replies import read_replies
from apps.generation.previews.table import preview_table
from apps.generation.recipe import estimates, targets
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows import personas
from apps.generation.rows.preview import generate_preview
from apps.generation.rows.seed_tables import load_tables
from apps.generation.views.draft import Draft
from apps.llm.errors import LLMError
from apps.llm.thinking import parse_thinking
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer


@require_POST
@limited("previews")
async def preview(request: HttpRequest) -> HttpResponse:
    """Some rows from the model, or the problems at their fields, in one fragment."""
    owner = await request.auser()
    assert isinstance(owner, User)
    draft = Draft.posted(request.POST)
    draft.name = draft.name or "Preview"
    job_request = await asyncio.to_thread(draft.read)  # up to megabytes of seed rows, and templates
    rows = int(request.POST.get("try", "3")) if request.POST.get("try") in {"3", "10"} else 3
    known = await asyncio.to_thread(read_replies, request.POST.get("tried", ""))
    context: dict[str, Any] = {}
    if job_request is not None:
        try:
            target = await in_db(targets.target_of_choice, draft.target)
            tables = await in_db(load_tables, owner, job_request.recipe)
            tried = await generate_preview(
                target,
                job_request.recipe,
                job_request.seed,
                person=owner.pk,
                rows=rows,
                tables=tables,
                known=known,
            )
            context["rows"] = tried
            marks = column_marks(job_request.recipe, job_request.seed, draft.target)
            context["table"] = preview_table(marks, tried)
            context["system"] = job_request.recipe.system_message
            context["estimate"] = await in_db(
                partial(estimates.estimate_job, refill=job_request.refill, width=job_request.width),
                target,
                tried,
                job_request.rows,
            )
        except RecipeError as error:
            draft.report_all(error)
        except (NoServer, LLMError) as error:
            context["problem"] = str(error)
    context |= draft.feedback()
    return await sync_to_async(render)(request, "generation/editor/preview/_preview.html", context)


@require_POST
@limited("previews")
async def write_personas(request: HttpRequest) -> HttpResponse:
    """People that the model writes, as JSON: {"values": [...]} or {"problem": "..."}."""
    about = request.POST.get("about", "").strip()[:500]
    count = request.POST.get("count", "")
    number = int(count) if count.isdecimal() and 1 <= int(count) <= personas.MOST else 20
    thinking = request.POST.get("thinking", "")
    try:
        setting = parse_thinking(thinking) if thinking else None
        target = await in_db(targets.target_of_choice, request.POST.get("target", ""))
        person = (await request.auser()).pk
        values = await personas.write(target, about, number, person=person, setting=setting)
    except (NoServer, LLMError, personas.NoPersonas, ValueError) as error:
        return JsonResponse({"problem": str(error)}, status=200)
    return JsonResponse({"values": values})
