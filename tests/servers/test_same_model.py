"""Which servers seem to serve the same model, and what proves it."""

import pytest

from apps.servers.models import Kind, Server
from apps.servers.same_model import model_difference, same_model_targets, share_models
from apps.servers.targets import Target

pytestmark = pytest.mark.django_db


def server_of(name: str, model: str, **values: object) -> Server:
    kind = values.pop("kind", Kind.LLAMA_SERVER)
    group = values.pop("group", "")
    address = values.pop("address", name.lower())
    facts = {"models": [{"id": model, **values}]}
    return Server.objects.create(
        name=name,
        base_url=f"http://{address}.test/v1",
        kind=kind,
        model_group=group,
        stored_facts=facts,
    )


def names(server: Server, model: str) -> list[tuple[str, str]]:
    return [(str(found.server), found.model) for found in same_model_targets(Target(server, model))]


def test_servers_share_a_model_by_name_and_alias() -> None:
    one = server_of("One", "qwen", aliases=["q"])
    server_of("Two", "q")
    server_of("Three", "gemma")
    assert names(one, "qwen") == [("Two", "q")]
    assert share_models(Server.objects.all())


def test_a_proxy_takes_part_by_a_group_alone() -> None:
    one = server_of("One", "qwen", group="Qwen")
    server_of("Proxy", "qwen", kind=Kind.LITELLM)
    server_of("Grouped", "gpt-qwen", kind=Kind.LITELLM, group="Qwen")
    assert names(one, "qwen") == [("Grouped", "gpt-qwen")]


def test_a_server_under_two_names_takes_part_once() -> None:
    one = server_of("One", "qwen")
    server_of("Again", "qwen", address="one")
    server_of("Two", "qwen")
    server_of("Two again", "qwen", address="two")
    assert names(one, "qwen") == [("Two", "qwen")]


def test_other_weights_are_another_model() -> None:
    one = server_of("One", "qwen", weights=[7, 4, 2])
    two = server_of("Two", "qwen", weights=[7, 8, 2])
    assert names(one, "qwen") == []
    difference = model_difference(Target(one, "qwen"), Target(two, "qwen"))
    assert difference == "“Two” has other weights under the name qwen."


@pytest.mark.parametrize(
    ("stored", "answer", "is_same"),
    [("Monday.", "Monday.", True), ("Monday.", "Friday.", False), ("", "Monday.", None)],
)
def test_answers_are_compared_where_weights_are_not_reported(
    stored: str, answer: str, is_same: bool | None
) -> None:
    one, two = server_of("One", "qwen"), server_of("Two", "qwen")
    one.stored_facts = one.stored_facts | {"canaries": {"qwen": stored}}
    found = model_difference(Target(one, "qwen"), Target(two, "qwen"), answer)
    assert (None if found is None else found == "") is is_same
