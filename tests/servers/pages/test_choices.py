"""What a person chooses from when he says which server does what."""

import pytest

from apps.servers.models import DefaultServer, Server, Use
from apps.servers.pages.choices import default_choices, parse_choice
from apps.servers.services import choose_target

pytestmark = pytest.mark.django_db

MODELS = [{"id": "chat", "embeddings": False}, {"id": "vectors", "embeddings": True}, {"id": "x"}]


@pytest.fixture
def one() -> Server:
    return Server.objects.create(
        name="One", base_url="http://127.0.0.1:1/v1", stored_facts={"models": MODELS}
    )


def test_models_that_can_do_it_and_those_that_do_not_say(one: Server) -> None:
    found = {choice.use: choice for choice in default_choices([one])}
    chat = [option.value for option in found[Use.CHAT].groups[0].options]
    assert chat == [f"{one.pk}", f"{one.pk}:chat", f"{one.pk}:x"]
    embeddings = [option.value for option in found[Use.EMBEDDINGS].groups[0].options]
    assert embeddings == [f"{one.pk}", f"{one.pk}:vectors", f"{one.pk}:x"]


def test_what_was_chosen_is_there_even_if_the_model_is_gone(one: Server) -> None:
    DefaultServer.objects.create(use=Use.CHAT, server=one, model="gone")
    chat = default_choices([one])[0]
    assert chat.chosen == f"{one.pk}:gone"
    assert chat.groups[0].options[-1].label == "One: gone (not available)"
    assert chat.label == "One: gone"


def test_nobody_yet(one: Server) -> None:
    assert {choice.label for choice in default_choices([one])} == {"Not set"}


@pytest.mark.parametrize("value", ["", "0", "x", ":chat", "999:chat"])
def test_no_such_server(one: Server, value: str) -> None:
    assert parse_choice(value, [one]) is None


def test_a_model_with_a_colon_in_its_name(one: Server) -> None:
    assert parse_choice(f"{one.pk}:qwen:14b", [one]) == (one, "qwen:14b")


def test_a_server_whose_models_cannot_do_it_is_not_offered(one: Server) -> None:
    one.stored_facts = {"models": [{"id": "all-minilm"}, {"id": "text-embedding-3-small"}]}
    found = {choice.use: choice for choice in default_choices([one])}
    assert found[Use.CHAT].groups == []
    assert len(found[Use.EMBEDDINGS].groups[0].options) == 3
    one.stored_facts = {}  # nobody has looked yet
    assert [group.name for group in default_choices([one])[0].groups] == ["One"]


@pytest.mark.parametrize(
    ("models", "use", "name"),
    [
        ([{"id": "demo", "embeddings": None}, {"id": "minilm", "embeddings": True}], "e", "minilm"),
        ([{"id": "demo"}, {"id": "text-embedding-3-small"}], "e", "text-embedding-3-small"),
        ([{"id": "text-embedding-3-small"}, {"id": "demo"}], "c", "demo"),
        ([{"id": "demo"}], "e", "demo"),
    ],
)
def test_the_first_model_is_one_that_can_do_it(
    one: Server, models: list[dict[str, object]], use: str, name: str
) -> None:
    one.stored_facts = {"models": models}
    wanted = Use.EMBEDDINGS if use == "e" else Use.CHAT
    assert choose_target(one, "", wanted).model == name
