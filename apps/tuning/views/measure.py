"""The page “Measure” of a server. Everyone sees it; admins measure."""

from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from apps.core.permissions import require_admin
from apps.servers.models import Server, State
from apps.servers.services import can_generate, forget_best_width
from apps.tuning.errors import SweepError
from apps.tuning.models import SweepRun
from apps.tuning.runs.services import active_run, cancel_sweep, end_lost_runs, start_sweep
from apps.tuning.sweep.results import SweepResults
from apps.tuning.sweep.services import DEFAULT_MINUTES, MOST_MINUTES
from apps.tuning.sweep.tables import Table, describe, make_tables, to_markdown
from apps.tuning.views.curves import Curve, make_curves

ADMINS_ALONE = "Only admins can measure servers."


class MeasureForm(forms.Form):
    """What to measure, and for how long."""

    model = forms.ChoiceField(required=False)
    minutes = forms.IntegerField(
        initial=DEFAULT_MINUTES,
        min_value=1,
        max_value=MOST_MINUTES,
        label=f"Minutes (at most, 1 to {MOST_MINUTES})",
    )

    def __init__(self, server: Server, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = [model.id for model in server.model_facts if can_generate(server, model)]
        field = cast(forms.ChoiceField, self.fields["model"])
        field.choices = [("", "First that generates text"), *((name, name) for name in models)]
        if len(models) < 2:
            del self.fields["model"]


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run as the page shows it."""

    run: SweepRun
    results: SweepResults | None
    lines: list[str]
    tables: list[Table]

    @classmethod
    def of(cls, run: SweepRun) -> "ShownRun":
        results = run.results
        if results is None:
            return cls(run, None, [], [])
        return cls(run, results, describe(results), make_tables(results))


@require_http_methods(["GET", "HEAD", "POST"])
def measure(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what was measured of a server; `export` answers as Markdown."""
    server = get_object_or_404(Server.objects.prefetch_related("defaults"), pk=pk)
    if request.method == "POST":
        return _change(request, server)
    end_lost_runs(server)
    if "export" in request.GET:
        return _export(request, server)
    return _page(request, server, MeasureForm(server))


def _change(request: HttpRequest, server: Server) -> HttpResponse:
    """Start or cancel a measurement, or take back the number of rows that one has set."""
    require_admin(request, ADMINS_ALONE)
    match request.POST.get("action"):
        case "start":
            form = MeasureForm(server, request.POST)
            if form.is_valid():
                try:
                    model, minutes = (
                        form.cleaned_data.get("model", ""),
                        form.cleaned_data["minutes"],
                    )
                    start_sweep(server, model, minutes, cast(User, request.user))
                except SweepError as error:
                    form.add_error(None, str(error))
            if form.errors:
                return _page(request, server, form, status=422)
        case "cancel":
            cancel_sweep(server)
        case "forget":
            forget_best_width(server, request.POST.get("model", ""))
            messages.success(request, "Jobs find the number of rows themselves again.")
        case _:
            return HttpResponseBadRequest("Unknown action.")
    return redirect("tuning:measure", server.pk)


def _page(
    request: HttpRequest, server: Server, form: MeasureForm, status: int = 200
) -> HttpResponse:
    runs = list(server.sweeps.all())
    active = active_run(server)
    shown = _chosen(request, runs, "run") or active or next(iter(runs), None)
    other = _chosen(request, runs, "with")
    both = [ShownRun.of(run) for run in (shown, other) if run is not None]
    context = {
        "server": server,
        "form": form,
        "runs": runs,
        "active": active,
        "shown": both,
        "curves": _curves(both),
        "best_widths": sorted(server.facts.best_widths.items()),
        "away": _away_reason(server),
    }
    is_poll = "HX-Request" in request.headers
    template = "tuning/_measured.html" if is_poll else "tuning/measure.html"
    return render(request, template, context, status=status)


def _chosen(request: HttpRequest, runs: list[SweepRun], name: str) -> SweepRun | None:
    """The run that the address names, if it is one of this server."""
    wanted = request.GET.get(name, "")
    return next((run for run in runs if str(run.pk) == wanted), None)


def _curves(shown: list[ShownRun]) -> list[Curve]:
    return make_curves([one.results for one in shown if one.results is not None])


def _away_reason(server: Server) -> str:
    """Say why the server cannot be measured now, as far as is known; "" if nothing is."""
    if server.state in {State.READY, State.UNKNOWN}:
        return ""
    return server.facts.error or f"The server is not ready: {State(server.state).label}."


def _export(request: HttpRequest, server: Server) -> HttpResponse:
    run = _chosen(request, list(server.sweeps.all()), "run")
    results = None if run is None else run.results
    if run is None or results is None:
        return HttpResponse("No measurements yet.\n", content_type="text/markdown", status=404)
    text = f"# {server.name}\n\n{to_markdown(results)}"
    name = f"measure-{server.pk}-{run.pk}.md"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="text/markdown; charset=utf-8", headers=headers)
