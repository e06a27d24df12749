"""Examines a server: reads what it reports, asks it, and checks both."""

from datetime import timedelta

from apps.runtime.async_db import in_db
from apps.servers.models import Server, State
from apps.servers.services import Target, aread_health, choose_target, refresh_server
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks import check_all
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.measurements import measurements_of
from apps.tuning.doctor.questions.ask import ask_questions
from apps.tuning.doctor.reading import known_reading, read_server
from apps.tuning.hooks import read_traffic, traffic_of

# Models of a router or llama-swap that are in memory; more of them are left out.
MOST_MODELS = 8


async def examine_server(server: Server, *, asks: bool = True) -> list[Examination]:
    """Examine each model of a server that is in memory. None is loaded for it.

    Args:
        asks: False: only read what is reported, send no request to a model.
    """
    server = await refresh_server(server, max_age=timedelta())
    if server.state != State.READY:
        reason = server.facts.error or f"The server is not ready: {State(server.state).label}."
        return [Examination(server.name, notes=[reason], is_examined=False)]
    if server.swaps:
        models = server.loaded_models[:MOST_MODELS]
        if not models:
            return [await _examine_unloaded(server)]
    else:
        models = [choose_target(server).model]
    return [await _examine(Target(server, model), asks) for model in models]


async def _examine_unloaded(server: Server) -> Examination:
    """Return what is known of a router or llama-swap without asking a model."""
    recorded = traffic_of(await in_db(read_traffic, [server.pk]), server.pk, "")
    health = (await aread_health([server]))[server.pk]
    found = check_all(known_reading(server, "", recorded, health), Answers())
    note = "No model is in memory. Load one, then examine it."
    return Examination(server.name, findings=found, notes=[note], is_examined=False)


async def _examine(target: Target, asks: bool) -> Examination:
    reading = await read_server(target)
    answers = Answers()
    if asks and target.server.facts.sleeping:
        answers.notes.append("The server sleeps, and a question would wake it. None was asked.")
    elif asks and not reading.is_llama_cpp:
        answers.notes.append(
            "No question was asked: this is no llama.cpp server, and answers may cost money."
        )
    elif asks:
        answers = await ask_questions(target, reading)
    return Examination(
        target.server.name,
        target.model,
        check_all(reading, answers),
        answers.notes,
        measurements=measurements_of(reading, answers),
        build=target.server.facts.build,
        command=reading.command,
    )
