"""The page “Examine” of a server. Everyone sees it; admins examine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from apps.core.permissions import require_admin
from apps.servers.models import Server
from apps.tuning.doctor.comparison import Comparison, compare
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.mend import Mend, propose
from apps.tuning.errors import DoctorError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.models import DoctorRun
from apps.tuning.runs.doctor_services import (
    active_examination,
    end_lost_runs,
    start_examination,
    waits_for_worker,
)

ADMINS_ALONE = "Only admins can examine servers."


@dataclass(frozen=True, slots=True)
class ShownExamination:
    """One model as the page shows it."""

    number: str
    """From 1: names the parts of the page."""
    examination: Examination
    mend: Mend | None
    """None: no flag mends what was found."""
    comparison: Comparison | None
    """With the earlier run; None: the model was not examined then."""


@require_http_methods(["GET", "HEAD", "POST"])
def doctor(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what was found at a server; `download` answers with a mended command."""
    server = get_object_or_404(Server, pk=pk)
    if request.method == "POST":
        return _change(request, server)
    end_lost_runs(server)
    runs = list(server.doctor_runs.all())
    active = active_examination(server)
    shown = _chosen(request, runs, "run") or next((run for run in runs if run != active), None)
    before = _chosen(request, runs, "with") or _run_before(runs, shown)
    found = _pair_with_earlier(shown, before)
    if "download" in request.GET:
        return _download(server, found, request.GET["download"])
    context = {
        "server": server,
        "runs": [run for run in runs if run != active],
        "active": active,
        "is_waiting": active is not None and waits_for_worker(server),
        "shown": shown,
        "before": before,
        "found": found,
        "is_compared": any(one.comparison is not None for one in found),
    }
    is_poll = "HX-Request" in request.headers
    return render(request, "tuning/_examined.html" if is_poll else "tuning/doctor.html", context)


def _change(request: HttpRequest, server: Server) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    if request.POST.get("action") != "start":
        return HttpResponseBadRequest("Unknown action.")
    try:
        start_examination(server, cast(User, request.user))
    except DoctorError as error:
        messages.error(request, str(error))
    return redirect("tuning:doctor", server.pk)


def _chosen(request: HttpRequest, runs: Sequence[DoctorRun], name: str) -> DoctorRun | None:
    """The run that the address names, if it is one of this server."""
    wanted = request.GET.get(name, "")
    return next((run for run in runs if str(run.pk) == wanted), None)


def _run_before(runs: Sequence[DoctorRun], shown: DoctorRun | None) -> DoctorRun | None:
    """The latest run before this one that could examine anything."""
    if shown is None:
        return None
    earlier = (run for run in runs if run.pk < shown.pk)
    return next((run for run in earlier if any(one.is_examined for one in run.examinations)), None)


def _pair_with_earlier(run: DoctorRun | None, before: DoctorRun | None) -> list[ShownExamination]:
    earlier = {one.model: one for one in before.examinations} if before is not None else {}
    return [
        ShownExamination(
            str(number),
            one,
            propose(
                one.command, [flag for each in one.findings for flag in each.flags], shipped_table()
            ),
            compare(earlier[one.model], one) if one.model in earlier else None,
        )
        for number, one in enumerate(run.examinations if run is not None else [], start=1)
    ]


def _download(server: Server, found: Sequence[ShownExamination], number: str) -> HttpResponse:
    mend = next((one.mend for one in found if one.number == number), None)
    if mend is None:
        return HttpResponse("There is no mended command.\n", content_type="text/plain", status=404)
    headers = {"Content-Disposition": f'attachment; filename="server-{server.pk}.sh"'}
    return HttpResponse(
        f"{mend.command}\n", content_type="text/plain; charset=utf-8", headers=headers
    )
