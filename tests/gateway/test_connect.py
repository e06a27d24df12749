"""The page “Connect a program”: what it shows works as it is, with a key put in."""

import ast
import asyncio
import html
import re
import sys

import pytest
import yaml
from django.test import Client
from pytest_django import Settings

from apps.gateway.program_settings import KEY, PROGRAMS
from apps.servers.models import Server
from apps.servers.services import refresh_server
from tests.gateway.test_clients import VENV

OTHERS = ("anthropic", "langchain", "instructor")
IN_VENV = pytest.mark.skipif(not VENV, reason="WORKBENCH_TEST_CLIENTS names no environment")
ODD = 'it\'s "a" model: 7B'


def shown(page: str, slug: str) -> str:
    found = re.search(rf'id="program-{slug}"><code>(.*?)</code>', page, re.DOTALL)
    assert found is not None
    return html.unescape(re.sub("</?mark>", "", found[1]))


@pytest.mark.django_db(transaction=True)
def test_every_program_has_address_and_one_place_for_the_key(
    browser: Client, settings: Settings
) -> None:
    settings.PUBLIC_ORIGIN = "https://ai.example"
    page = browser.get("/servers/connect/").content.decode()
    assert "No default model for chats is set." in page
    for program in PROGRAMS:
        text = shown(page, program.slug)
        assert "https://ai.example" in text
        assert text.count(KEY) == 1
    untried = [program for program in PROGRAMS if not program.tried]
    assert page.count("Not tried here.") == len(untried)
    assert page.count("Tried with version") == len(PROGRAMS) - len(untried)
    for path in ("/servers/", "/settings/"):
        assert "/servers/connect/" in browser.get(path).content.decode()


@pytest.mark.django_db(transaction=True)
def test_connect_page_needs_a_login(client: Client) -> None:
    assert client.get("/servers/connect/").status_code == 302


@pytest.mark.parametrize("slug", [p.slug for p in PROGRAMS if p.where == "Python"])
def test_python_reads_any_name_of_a_model(slug: str) -> None:
    program = next(program for program in PROGRAMS if program.slug == slug)
    tree = ast.parse(program.text("http://a", ODD))
    assert ODD in {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_yaml_of_continue_has_the_models_name() -> None:
    program = next(program for program in PROGRAMS if program.slug == "continue")
    model = yaml.safe_load(program.text("http://a:1", ODD))["models"][0]
    assert (model["model"], model["apiBase"], model["apiKey"]) == (ODD, "http://a:1/v1", KEY)


def test_yaml_of_librechat_has_the_models_name() -> None:
    program = next(program for program in PROGRAMS if program.slug == "librechat")
    [endpoint] = yaml.safe_load(program.text("http://a:1", ODD))["endpoints"]["custom"]
    assert (endpoint["baseURL"], endpoint["apiKey"]) == ("http://a:1/v1", KEY)
    assert endpoint["models"]["default"] == [ODD]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("slug", "command"),
    [
        ("openai", sys.executable),
        ("curl", "bash"),
        *(pytest.param(slug, f"{VENV}/bin/python", marks=IN_VENV) for slug in OTHERS),
    ],
)
async def test_shown_settings_get_an_answer(
    slug: str, command: str, root: str, token: str, server: Server
) -> None:
    model = (await refresh_server(server)).model_ids[0]
    program = next(program for program in PROGRAMS if program.slug == slug)
    text = program.text(root, model).replace(KEY, token)
    process = await asyncio.create_subprocess_exec(
        command, "-c", text, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()[-2000:]
    assert said.strip()
    assert b'"error"' not in said
