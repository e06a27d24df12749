"""The page “Plan a server”."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from apps.tuning.errors import PlanError
from apps.tuning.forms import PlanForm
from apps.tuning.importing.import_text import memory_line
from apps.tuning.planner.configurations import FORMATS, planned_server, write_configuration
from apps.tuning.planner.flag_warnings import warnings_for
from apps.tuning.planner.flags import Files
from apps.tuning.planner.memory import CACHE_TYPES
from apps.tuning.planner.plan import Plan, make_plan
from apps.tuning.planner.plan_text import (
    describe_cache,
    describe_hardware,
    describe_model,
    describe_roof,
    size_text,
)
from apps.tuning.planner.stack.stack_plan import (
    STACK_FORMATS,
    StackPlan,
    stack_warnings,
    write_stack,
)
from apps.tuning.views.memory_bar import memory_bar, stack_bar


@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: HttpRequest) -> HttpResponse:
    """Show the form; plan what was posted, as a fragment for htmx."""
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = PlanForm(*sent, is_staff=cast(User, request.user).is_staff)
    context: dict[str, Any] = {"form": form}
    if form.is_bound and form.is_valid():
        try:
            if form.stack is not None:
                context |= _stack(form.stack)
            elif form.imported is not None:
                context["imported"] = [
                    (server, memory_line(server, form.plan_hardware)) for server in form.imported
                ]
            else:
                context |= _result(make_plan(form.plan_request), form.model_files)
        except PlanError as error:
            form.add_error(None, str(error))
    status = 422 if form.errors else 200
    template = "tuning/_result.html" if "HX-Request" in request.headers else "tuning/plan.html"
    return render(request, template, context, status=status)


def _result(made: Plan, files: Files) -> dict[str, Any]:
    shape, server = made.request.shape, planned_server(made, files)
    return {
        "plan": made,
        "model": describe_model(shape),
        "hardware": describe_hardware(made.request.hardware),
        "cache": describe_cache(made.cache),
        "roof": describe_roof(made),
        "needed": size_text(made.needed_bytes),
        "available": size_text(made.request.hardware.available_bytes),
        "bar": memory_bar(made),
        "cache_types": CACHE_TYPES,
        "rows": [(row.slots, [row.contexts[name] for name in CACHE_TYPES]) for row in made.table],
        "flags": server.flags,
        "warnings": warnings_for(server.flags, made.cache, shape, made.request.use),
        "configurations": _configurations(made, files),
    }


def _stack(stack: StackPlan) -> dict[str, Any]:
    return {
        "stack": stack,
        "hardware": describe_hardware(stack.hardware),
        "needed": size_text(stack.needed_bytes),
        "available": size_text(stack.hardware.available_bytes),
        "bar": stack_bar(stack),
        "warnings": stack_warnings(stack),
        "configurations": [
            (name, FORMATS[name], write_stack(name, stack)) for name in STACK_FORMATS
        ],
    }


def _configurations(made: Plan, files: Files) -> list[tuple[str, str, str]]:
    """Name, title and text of each, or why there is none."""
    found = []
    for name, title in FORMATS.items():
        try:
            text = write_configuration(name, made, files)
        except PlanError as error:
            text = str(error)
        found.append((name, title, text))
    return found
