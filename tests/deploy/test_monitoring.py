"""The files of the profile `monitoring`, read by Prometheus' own program where it is installed."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from apps.monitoring.metrics.collector import WorkbenchCollector, exposition
from apps.servers.models import Server
from tests.deploy import compose

FOLDER = compose.REPOSITORY / "deploy" / "monitoring"
DASHBOARD = json.loads((FOLDER / "grafana" / "workbench.json").read_text())
LLAMA_SERVER = {"llamacpp:requests_processing", "llamacpp:requests_deferred"}
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def promtool(*arguments: str) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_prometheus_accepts_its_configuration() -> None:
    promtool("check", "config", "--syntax-only", str(FOLDER / "prometheus.yml"))


@needs_promtool
def test_prometheus_accepts_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions())
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


@pytest.mark.django_db
def test_each_metric_of_the_dashboard_exists() -> None:
    Server.objects.create(name="GPU", base_url="http://gpu/v1")
    ours = set()
    for family in WorkbenchCollector().collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket",)}.get(family.type, ("",))
        ours |= {family.name + suffix for suffix in suffixes}
    used = {
        name
        for text in expressions()
        for name in re.findall(r"\b(?:workbench_|llamacpp:)\w+", text)
    }
    assert used - ours == LLAMA_SERVER


def test_prometheus_reads_services_and_keys_that_compose_has() -> None:
    services = compose.load()["services"]
    aliases = {
        alias
        for service in services.values()
        if isinstance(service.get("networks"), dict)
        for network in service["networks"].values()
        for alias in (network or {}).get("aliases", ())
    }
    keys = {config["target"] for config in services["prometheus"]["configs"]}
    jobs = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert {job["authorization"]["credentials_file"] for job in jobs} == keys
    hosts = {job["static_configs"][0]["targets"][0].partition(":")[0] for job in jobs}
    assert hosts <= {*services, *aliases, "embed"}
    for line in (*services["prometheus"]["volumes"], *services["grafana"]["volumes"]):
        source = line.partition(":")[0]
        assert not source.startswith("./") or (compose.REPOSITORY / source).is_file()


@needs_promtool
@pytest.mark.django_db
def test_prometheus_reads_what_metrics_answers() -> None:
    Server.objects.create(name='GPU "box"', base_url="http://gpu/v1")
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=exposition(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
