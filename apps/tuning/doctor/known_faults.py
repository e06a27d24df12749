"""What is found without an examination: in recorded requests and in what is known of a server."""

from collections.abc import Sequence

from apps.servers.models import Server
from apps.servers.services import Health, choose_target, read_health
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks import check_all
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import known_reading
from apps.tuning.hooks import ByModel, read_traffic, traffic_of


def known_faults(servers: Sequence[Server]) -> dict[int, list[str]]:
    """Return what is wrong and its evidence, by server. Asks no server; blocks."""
    traffic = read_traffic([server.pk for server in servers])
    health = read_health(servers)
    found = {server.pk: _of_server(server, traffic, health[server.pk]) for server in servers}
    return {pk: sentences for pk, sentences in found.items() if sentences}


def _of_server(server: Server, traffic: ByModel, health: Health) -> list[str]:
    # While one is unloaded and the next loaded, "" still has what is known of the whole server.
    models = server.loaded_models or [""] if server.swaps else [choose_target(server).model]
    return [
        f"{_named(server, model)}{finding.what} {finding.evidence}"
        for model in models
        for finding in _faults(server, model, traffic, health)
    ]


def _faults(server: Server, model: str, traffic: ByModel, health: Health) -> list[Finding]:
    recorded = traffic_of(traffic, server.pk, model)
    reading = known_reading(server, model, recorded, health)
    found = check_all(reading, Answers())
    return [finding for finding in found if finding.severity is Severity.FAULT]


def _named(server: Server, model: str) -> str:
    """The model's name, where the server has several."""
    return f"{model}: " if server.swaps and model else ""
