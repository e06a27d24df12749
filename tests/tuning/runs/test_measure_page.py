"""GET and POST /servers/N/measure/"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.servers.models import Server, State
from apps.servers.services import record_best_width
from apps.tuning.models import SweepRun
from apps.tuning.runs.services import active_run, end_run
from apps.tuning.sweep.figures import Point
from apps.tuning.sweep.plan import Load
from apps.tuning.sweep.results import ChatTurns, SweepResults, Turn
from apps.tuning.views.curves import make_curves

FACTS = {"slots": 4, "models": [{"id": "m"}], "sources": {"slots": "its /props"}}


@pytest.fixture
def gpu(db: None) -> Server:
    return Server.objects.create(
        name="GPU box",
        base_url="http://127.0.0.1:9/v1",
        kind="llama-server",
        state=State.READY,
        stored_facts=FACTS,
    )


@pytest.fixture
def admin(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def measured(*rates: float) -> SweepResults:
    points = [
        Point(Load(2**at, 256), 3, 900.0, rate, 0.1 * (at + 1), 0.2 * (at + 1), None)
        for at, rate in enumerate(rates)
    ]
    chat = ChatTurns(1000, [Turn(0.5, 1.0)] * 4, [Turn(0.1, 0.6)] * 4)
    return SweepResults(
        "m", 4, 4096, "b1", points=points, chat=chat, probed={2: 90.0, 4: 95.0}, best_width=4
    )


def run_of(server: Server, results: SweepResults | None, error: str = "") -> SweepRun:
    run = SweepRun.objects.create(server=server, minutes=5)
    end_run(run.pk, error, results)
    return run


def page(browser: Client, server: Server, query: str = "", **extra: Any) -> str:
    answer = browser.get(f"/servers/{server.pk}/measure/{query}", **extra)
    assert answer.status_code == 200
    return answer.content.decode()


def act(browser: Client, server: Server, **fields: str) -> Any:
    return browser.post(f"/servers/{server.pk}/measure/", fields)


def test_page_without_a_run_says_so(admin: Client, browser: Client, gpu: Server) -> None:
    assert "No measurements yet." in page(admin, gpu)
    shown = page(browser, gpu)
    assert "Ask an admin to measure this server." in shown
    assert 'name="minutes"' not in shown


@pytest.mark.parametrize("action", ["start", "cancel", "forget", "other"])
def test_only_admins_measure(browser: Client, gpu: Server, action: str) -> None:
    answer = act(browser, gpu, action=action, minutes="1")
    assert answer.status_code == 403
    assert "Only admins can measure servers." in answer.content.decode()
    assert not SweepRun.objects.exists()


def test_admin_starts_and_cancels(admin: Client, carol: User, gpu: Server) -> None:
    assert act(admin, gpu, action="start", minutes="7").status_code == 302
    run = active_run(gpu)
    assert run is not None
    assert (run.minutes, run.owner) == (7, carol)
    SweepRun.objects.filter(pk=run.pk).update(doing="4 sequences", done=3, planned=9)
    shown = page(admin, gpu)
    assert "4 sequences" in shown
    assert "3 of 9 measurements." in shown
    assert 'hx-trigger="every 2s"' in shown
    assert "being measured already" in act(admin, gpu, action="start", minutes="7").content.decode()
    assert act(admin, gpu, action="cancel").status_code == 302
    assert active_run(gpu) is None
    shown = page(admin, gpu)
    assert "Cancelled." in shown
    assert "every 2s" not in shown


@pytest.mark.parametrize("minutes", ["0", "121", "many", ""])
def test_minutes_are_checked(admin: Client, gpu: Server, minutes: str) -> None:
    answer = act(admin, gpu, action="start", minutes=minutes)
    assert answer.status_code == 422
    assert 'id="id_minutes_error"' in answer.content.decode()
    assert active_run(gpu) is None


def test_unknown_action_is_refused(admin: Client, gpu: Server) -> None:
    assert act(admin, gpu, action="explode").status_code == 400


def test_server_that_is_away_cannot_be_measured(admin: Client, gpu: Server) -> None:
    Server.objects.update(state=State.UNREACHABLE)
    shown = page(admin, gpu)
    assert "It can be measured when it is ready." in shown
    assert "disabled" in shown


def test_run_is_shown_with_curves_tables_and_export(browser: Client, gpu: Server) -> None:
    run = run_of(gpu, measured(100, 190, 200))
    shown = page(browser, gpu)
    assert shown.count("<figure") == 3
    assert "knee: 2" in shown
    assert "Chat of 4 turns (last prompt: 1,000 tokens)" in shown
    assert "Best number of rows in parallel: 4 (95.0 tokens/s)." in shown
    answer = browser.get(f"/servers/{gpu.pk}/measure/?run={run.pk}&export=1")
    assert answer["Content-Type"].startswith("text/markdown")
    text = answer.content.decode()
    assert text.startswith("# GPU box\n")
    assert "| first token, prompt cache | 100 ms |" in text
    assert "| 2 | 190 | 95.0 | 1.90x |" in text


def test_two_runs_stand_side_by_side(browser: Client, gpu: Server) -> None:
    one, other = run_of(gpu, measured(100, 190, 200)), run_of(gpu, measured(100, 150))
    shown = page(browser, gpu, f"?run={one.pk}&with={other.pk}")
    assert "First run, " in shown
    assert "Second run, " in shown
    assert "curve-line-2-late" in shown
    foreign = Server.objects.create(name="Other", base_url="http://127.0.0.1:8/v1")
    assert "First run, " not in page(browser, foreign, f"?run={one.pk}&with={other.pk}")


def test_failed_run_shows_its_reason(browser: Client, gpu: Server) -> None:
    run = run_of(gpu, None, "The model server is not responding.")
    assert "The model server is not responding." in page(browser, gpu)
    export = browser.get(f"/servers/{gpu.pk}/measure/?run={run.pk}&export=1")
    assert export.status_code == 404


def test_poll_is_a_fragment(browser: Client, gpu: Server) -> None:
    shown = page(browser, gpu, headers={"HX-Request": "true"})
    assert "<html" not in shown
    assert 'id="measured"' in shown


def test_best_width_is_shown_and_reset(admin: Client, gpu: Server) -> None:
    record_best_width(gpu, "m", 3, 2)
    shown = page(admin, gpu)
    assert "Jobs have <strong>3</strong> rows" in shown
    assert "2 while people use the server" in shown
    assert act(admin, gpu, action="forget", model="m").status_code == 302
    assert "Jobs have <strong>" not in page(admin, gpu)


def test_curves_reach_from_zero_to_a_round_number() -> None:
    total, each, first = make_curves([measured(100, 190, 230)])
    assert [tick.label for tick in total.y_ticks] == ["0", "62", "125", "188", "250"]
    assert [tick.label for tick in total.x_ticks] == ["1", "2", "4"]
    assert total.lines[0].dots[2][2] == "4: 230"
    assert each.title == "Tokens/s of each sequence"
    assert [line.name for line in first.lines] == ["median", "95th percentile"]
    assert make_curves([]) == []


def test_model_is_chosen_where_there_are_several(admin: Client, gpu: Server) -> None:
    assert 'name="model"' not in page(admin, gpu)
    models = [{"id": "m"}, {"id": "other"}, {"id": "vectors", "embeddings": True}]
    Server.objects.update(stored_facts=FACTS | {"models": models})
    shown = page(admin, gpu)
    assert '<option value="other">' in shown
    assert '<option value="vectors">' not in shown
    assert act(admin, gpu, action="start", minutes="1", model="vectors").status_code == 422
    assert act(admin, gpu, action="start", minutes="1", model="other").status_code == 302
    run = active_run(gpu)
    assert run is not None
    assert run.model == "other"


def test_admin_is_told_that_requests_may_cost_money(admin: Client, gpu: Server) -> None:
    assert "paid service" not in page(admin, gpu)
    Server.objects.update(kind="openai")
    assert "Requests to a paid service cost money." in page(admin, gpu)


def test_member_sees_a_running_measurement_without_its_button(
    admin: Client, browser: Client, gpu: Server
) -> None:
    act(admin, gpu, action="start", minutes="7")
    shown = page(browser, gpu)
    assert "Waiting for a worker." in shown
    assert "Max 7 min." in shown
    assert 'value="cancel"' not in shown


def test_earlier_runs_can_be_chosen(browser: Client, gpu: Server) -> None:
    first = run_of(gpu, measured(100, 150), "Cancelled.")
    assert "Compare with" not in page(browser, gpu)
    run_of(gpu, measured(100, 190, 200))
    shown = page(browser, gpu)
    assert "Compare with" in shown
    assert "(incomplete)" in shown
    assert "200" in shown
    chosen = page(browser, gpu, f"?run={first.pk}")
    assert "Cancelled." in chosen
    assert '<th scope="row">4</th>' in shown
    assert f'<option value="{first.pk}" selected>' in chosen


def test_name_of_a_server_is_text(browser: Client, gpu: Server) -> None:
    Server.objects.update(name="<b>Box</b>")
    run_of(gpu, measured(100))
    assert "<b>Box" not in page(browser, gpu)


def test_unknown_server_is_not_found(browser: Client, db: None) -> None:
    assert browser.get("/servers/99/measure/").status_code == 404
