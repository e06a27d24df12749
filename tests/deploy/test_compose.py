"""docker-compose.yml, read: no container engine is needed."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from tests.deploy import compose

FILE = compose.load()
FILLED = compose.load(compose.FILLED_IN)
SERVICES: dict[str, dict[str, Any]] = FILLED["services"]
SECRETS = {"WORKBENCH_SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD"}
SERVERS = {"LLM_BASE_URL", "LLM_API_KEY", "EMBED_BASE_URL"}


@pytest.mark.parametrize("document", [FILE, FILLED], ids=["as written", "filled in"])
def test_compose_file_fits_the_compose_schema(document: dict[str, Any]) -> None:
    schema = json.loads((compose.REPOSITORY / "tests/deploy/compose-spec.json").read_text())
    errors = Draft202012Validator(schema).iter_errors(document)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$$A", "$A"),
        ("$A-${A}", "1-1"),
        ("${EMPTY-x}${EMPTY:-x}${NONE-y}", "xy"),
        ("${NONE:-${A}}", "1"),
        ("${A:+[${A}]}${EMPTY:+x}${EMPTY+x}", "[1]x"),
    ],
)
def test_interpolation_follows_the_specification(text: str, expected: str) -> None:
    assert compose.interpolate(text, {"A": "1", "EMPTY": ""}) == expected


# --- .env --------------------------------------------------------------------


def test_every_variable_is_explained_and_every_explained_one_is_used() -> None:
    used = compose.variables(json.dumps(FILE))
    assert used == set(compose.env_example()) - {"COMPOSE_PROFILES"}


@pytest.mark.parametrize("name", sorted(SECRETS | SERVERS))
def test_a_required_variable_says_what_to_do(name: str) -> None:
    unset = {key: value for key, value in compose.FILLED_IN.items() if key != name}
    for env in (unset, unset | {name: ""}):
        with pytest.raises(compose.MissingVariableError, match=rf"^{name}: put .+ into \.env"):
            compose.load(env)


def test_the_example_leaves_no_secret_filled_in() -> None:
    example = compose.env_example()
    assert {name for name, value in example.items() if not value} >= SECRETS


def test_the_example_works_with_its_secrets_filled_in() -> None:
    written = dict(re.findall(r"^([A-Z_]+)=(.+)$", compose.ENV_EXAMPLE.read_text(), re.MULTILINE))
    app = compose.load({name: compose.FILLED_IN[name] for name in SECRETS} | written)
    host = urlsplit(app["services"]["web"]["environment"]["LLM_BASE_URL"]).hostname
    assert f"{host}:host-gateway" in app["services"]["web"]["extra_hosts"]


def test_the_documentation_names_real_variables_and_services() -> None:
    text = (compose.REPOSITORY / "docs/deploy.md").read_text()
    assert set(re.findall(r"^([A-Z_]+)=", text, re.MULTILINE)) <= set(compose.env_example())
    named = re.findall(r"compose (?:run|exec)(?: -\S+)* (\w+)", text)
    named += re.findall(r"compose (?:logs|up) -\S+(?: --\w+)* (\w[\w ]*)", text)
    assert {name for names in named for name in names.split()} <= set(SERVICES)


def test_the_example_shows_the_defaults() -> None:
    """A commented line says what happens without it."""
    defaults = dict(re.findall(r"\$\{(\w+):-([^${}]+)\}", json.dumps(FILE)))
    example = compose.env_example()
    # Shown with a value worth typing instead.
    own = {"WORKBENCH_DOMAIN", "WORKBENCH_HTTPS"}
    assert {name: example[name] for name in defaults.keys() - own} == {
        name: value for name, value in defaults.items() if name not in own
    }


# Of a start on one machine, or fixed by the image.
NOT_OF_COMPOSE = {
    *("WORKBENCH_HOST", "WORKBENCH_CHAT_MODEL", "WORKBENCH_EMBED_MODEL"),
    *("WORKBENCH_STATIC_ROOT", "WORKBENCH_DEBUG", "WORKBENCH_LLAMA_SERVER"),
    *("WORKBENCH_CHAT_SLOTS", "WORKBENCH_CHAT_CONTEXT", "WORKBENCH_CHAT_FLAGS"),
    "WORKBENCH_CHAT_DEVICE",
}


@pytest.mark.parametrize("name", compose.APP_SERVICES)
def test_every_documented_setting_reaches_the_app(name: str) -> None:
    """What does nothing in `.env` must not look as if it did."""
    page = (compose.REPOSITORY / "docs/settings.md").read_text()
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|", page, re.MULTILINE)
    documented = {setting for row in rows for setting in re.findall(r"[A-Z_]+", row)}
    assert len(documented) > 25
    assert documented - NOT_OF_COMPOSE <= set(SERVICES[name]["environment"])


@pytest.mark.parametrize("name", compose.APP_SERVICES)
def test_the_app_reads_what_it_is_given(name: str) -> None:
    source = (compose.REPOSITORY / "workbench/settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', source))
    if "dj_database_url.config(" in source:
        read.add("DATABASE_URL")
    assert set(SERVICES[name]["environment"]) <= read


# --- Structure ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        (set(), {"web", "pumps", "worker", "beat", "migrate", "postgres", "redis"}),
        ({"cpu"}, {"llm-cpu", "embed-cpu"}),
        ({"gpu"}, {"llm-gpu", "embed-gpu"}),
        ({"https"}, {"proxy"}),
    ],
)
def test_profiles(profiles: set[str], expected: set[str]) -> None:
    assert {n for n, s in SERVICES.items() if set(s.get("profiles", [])) == profiles} == expected


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_each_profile_has_the_two_addresses_of_the_example(profile: str) -> None:
    aliases = [
        alias
        for service in SERVICES.values()
        if profile in service.get("profiles", [])
        for alias in service["networks"]["default"]["aliases"]
    ]
    assert sorted(aliases) == ["embed", "llm"]
    for alias in aliases:
        assert f"http://{alias}:8080/v1" in compose.ENV_EXAMPLE.read_text()


def test_everything_named_is_declared() -> None:
    for name, service in SERVICES.items():
        networks = service.get("networks", ["default"])
        assert set(networks) <= set(FILLED["networks"]), name
        assert {c["source"] for c in service.get("configs", [])} <= set(FILLED["configs"]), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./deploy"):
                assert (compose.REPOSITORY / source).is_file(), name
            elif not source.startswith("./models"):
                assert source in FILLED["volumes"], name


def test_what_is_waited_for_can_come_true() -> None:
    for name, service in SERVICES.items():
        for other, wait in service.get("depends_on", {}).items():
            assert "profiles" not in SERVICES[other], f"{name} would start {other}"
            match wait["condition"]:
                case "service_healthy":
                    assert "healthcheck" in SERVICES[other]
                case "service_completed_successfully":
                    assert SERVICES[other]["restart"] == "no"


# --- What an operator relies on ----------------------------------------------


def test_only_this_machine_reaches_it_by_default() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"web", "proxy", "grafana"}
    assert published["web"] == ["127.0.0.1:8000:8000"]


def test_postgres_and_redis_stand_alone() -> None:
    assert FILLED["networks"]["private"]["internal"] is True
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["private"]
        assert any(volume.startswith(f"{name}:") for volume in SERVICES[name]["volumes"])


def test_redis_keeps_what_it_was_given() -> None:
    config = FILLED["configs"]["redis"]["content"].splitlines()
    assert {
        "appendonly yes",
        "appendfsync everysec",
        "maxmemory-policy noeviction",
        "requirepass 4ed15",
    } <= set(config)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_restarts_and_is_watched(name: str) -> None:
    service = SERVICES[name]
    assert service["logging"]["options"]["max-size"]
    assert "no-new-privileges:true" in service["security_opt"]
    if name == "migrate":
        return
    assert service["restart"] == "unless-stopped"
    assert name in {"beat", "proxy"} or service["healthcheck"]["test"]


@pytest.mark.parametrize("name", compose.APP_SERVICES)
def test_the_app_runs_with_little_power(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "user" not in service  # the image's own, which is not root: test_dockerfile.py


def test_passwords_stay_out_of_command_lines() -> None:
    secrets = [compose.FILLED_IN[name] for name in SECRETS | {"LLM_API_KEY"}]
    for name, service in SERVICES.items():
        line = json.dumps([service.get("command"), service.get("entrypoint")])
        assert not any(secret in line for secret in secrets), name


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_say_which(name: str) -> None:
    image = SERVICES[name]["image"]
    if name in compose.APP_SERVICES:
        assert (image, SERVICES[name]["build"]) == ("workbench", ".")
    else:
        assert ":" in image
        assert not image.endswith(":latest")


@pytest.mark.parametrize("name", ["llm-gpu", "embed-gpu"])
def test_the_gpu_is_asked_for(name: str) -> None:
    [device] = SERVICES[name]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no caddy on the PATH")
def test_the_proxy_accepts_its_configuration(tmp_path: Path) -> None:
    env = SERVICES["proxy"]["environment"] | {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]
    done = subprocess.run(command, cwd=compose.REPOSITORY, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
