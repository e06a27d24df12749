"""docker-compose.yml as Compose would see it: parsed, and with a person's .env filled in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parent.parent.parent
COMPOSE_FILE = REPOSITORY / "docker-compose.yml"
ENV_EXAMPLE = REPOSITORY / "deploy" / "env.example"

APP_SERVICES = ("web", "pumps", "worker", "beat", "migrate")
# What a person has to fill in, filled in.
FILLED_IN = {
    "WORKBENCH_SECRET_KEY": "0123456789" * 6,
    "POSTGRES_PASSWORD": "5ec7e7",
    "REDIS_PASSWORD": "4ed15",
    "LLM_BASE_URL": "http://host.docker.internal:9931/v1",
    "EMBED_BASE_URL": "http://host.docker.internal:9932/v1",
    "LLM_API_KEY": "llm-key",
}

NAME = re.compile(r"[A-Za-z_]\w*")
EXPRESSION = re.compile(r"([A-Za-z_]\w*)(?:(:?)([-?+])(.*))?", re.DOTALL)


class MissingVariableError(Exception):
    """`docker compose` would stop with this message."""


class _NoKeyTwice(yaml.SafeLoader):
    """As Compose reads it: PyYAML itself keeps the last of two in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"twice in one mapping: {twice}"
        return super().construct_mapping(node, deep)


def load(env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The file; with `env`, its variables replaced."""
    document = yaml.load(COMPOSE_FILE.read_text(), _NoKeyTwice)
    assert isinstance(document, dict)
    if env is None:
        return document
    filled = _interpolate_all(document, env)
    assert isinstance(filled, dict)
    return filled


def service(name: str, env: Mapping[str, str] = FILLED_IN) -> dict[str, Any]:
    found = load(env)["services"][name]
    assert isinstance(found, dict)
    return found


def env_example() -> dict[str, str]:
    """Name to value of what stands in the example, commented out or not."""
    lines = re.findall(r"^#?([A-Z_]+)=(.*)$", ENV_EXAMPLE.read_text(), re.MULTILINE)
    return dict(reversed(lines))  # the first of two wins


def variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{?([A-Za-z_]\w*)", text.replace("$$", "")))


def interpolate(text: str, env: Mapping[str, str]) -> str:
    """The Compose Specification's interpolation, chapter 12.

    Raises:
        MissingVariableError: a required variable is not set.
    """
    done = ""
    while text:
        before, dollar, text = text.partition("$")
        done += before
        if not dollar:
            break
        if text.startswith("$"):
            done, text = done + "$", text[1:]
        elif text.startswith("{"):
            end = _closing_brace(text)
            done, text = done + _substitute(text[1:end], env), text[end + 1 :]
        elif name := NAME.match(text):
            done, text = done + env.get(name[0], ""), text[name.end() :]
        else:
            raise ValueError(f"a lone $ before {text[:20]!r}")
    return done


def _interpolate_all(value: Any, env: Mapping[str, str]) -> Any:
    match value:
        case str():
            return interpolate(value, env)
        case list():
            return [_interpolate_all(item, env) for item in value]
        case dict():
            return {key: _interpolate_all(item, env) for key, item in value.items()}
    return value


def _closing_brace(text: str) -> int:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return position
    raise ValueError(f"no closing brace: {text[:40]!r}")


def _substitute(expression: str, env: Mapping[str, str]) -> str:
    parts = EXPRESSION.fullmatch(expression)
    if parts is None:
        raise ValueError(f"not an expression: {expression!r}")
    name, colon, operator, rest = parts.groups()
    value = env.get(name)
    absent = not value if colon else value is None
    if operator == "+":
        return "" if absent else interpolate(rest, env)
    if absent and operator == "-":
        return interpolate(rest, env)
    if absent and operator == "?":
        raise MissingVariableError(f"{name}: {interpolate(rest, env)}")
    return value or ""
