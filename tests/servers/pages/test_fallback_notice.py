"""Pages that embed texts say which server does so while the default one is away."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.servers.models import DefaultServer, Server, State, Use
from apps.servers.services import fallback_notice
from tests.classifiers import factories
from tests.markup import visible_text

SAID = "“Big box” does not answer. Embeddings come from “Small box”."


@pytest.fixture
def default(db: None) -> DefaultServer:
    away, here = (
        Server.objects.create(name=name, base_url=f"http://127.0.0.1:{port}/v1", state=state)
        for name, port, state in (
            ("Big box", 1, State.UNREACHABLE),
            ("Small box", 2, State.READY),
        )
    )
    return DefaultServer.objects.create(use=Use.EMBEDDINGS, server=away, fallback=here)


def test_the_notice_is_of_the_default_alone_and_only_while_it_is_away(
    default: DefaultServer,
) -> None:
    away, here = default.server, default.fallback
    assert here is not None
    assert fallback_notice(Use.EMBEDDINGS) == fallback_notice(Use.EMBEDDINGS, away) == SAID
    assert fallback_notice(Use.EMBEDDINGS, here) == fallback_notice(Use.CHAT) == ""
    Server.objects.update(state=State.UNREACHABLE)
    assert fallback_notice(Use.EMBEDDINGS) == "", "the fallback is away too"
    Server.objects.update(state=State.READY)
    assert fallback_notice(Use.EMBEDDINGS) == ""


def test_pages_that_embed_say_so(alice: User, browser: Client, default: DefaultServer) -> None:
    classifier = factories.classifier(alice, server=default.server)
    dataset = classifier.dataset
    assert dataset is not None
    pages = [
        reverse("classifiers:detail", args=[classifier.pk]),
        reverse("classifiers:files", args=[classifier.pk]),
        reverse("datasets:near_duplicates", args=[dataset.pk]),
    ]
    for page in pages:
        assert SAID in visible_text(browser.get(page).content.decode()), page
    default.server.state = State.READY
    default.server.save()
    for page in pages:
        assert SAID not in visible_text(browser.get(page).content.decode()), page
