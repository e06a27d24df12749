"""Taking parts of a tree away and bringing them back: nothing ever hangs below what is gone."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.chat import errors
from apps.chat.conversations import branch_view, branches, services
from apps.chat.models import Conversation, Message, Role, Status
from apps.core.models import ApiKey
from apps.servers.models import Server
from tests.chat.conftest import told
from tests.chat.tools.tool_server import ToolServer

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def alice_sync(alice: User) -> Client:
    _, token = ApiKey.issue(user=alice, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


def thread(owner: User) -> tuple[Conversation, list[Message]]:
    conversation = told(owner, "q1", "a1", "q2", "a2")
    return conversation, list(conversation.messages.order_by("pk"))


def shown(conversation: Conversation) -> list[str]:
    conversation.refresh_from_db()
    return [item.message.content for item in branch_view.active_branch(conversation)]


def orphans() -> int:
    return Message.objects.filter(deleted_at=None, parent__deleted_at__isnull=False).count()


def test_a_removed_message_is_no_leaf(alice: User, alice_sync: Client) -> None:
    conversation, (_, _, q2, a2) = thread(alice)
    assert alice_sync.delete(f"/api/v1/messages/{q2.pk}").status_code == 200
    url = f"/api/v1/conversations/{conversation.pk}"
    chosen = alice_sync.patch(url, {"active_leaf": a2.pk}, content_type=JSON)
    assert chosen.status_code == 404
    asked = alice_sync.post(f"{url}/messages", {"content": "x", "parent": a2.pk}, content_type=JSON)
    assert asked.status_code == 404
    assert alice_sync.get(url).status_code == 200
    assert shown(conversation) == ["q1", "a1"]


def test_what_comes_back_has_what_it_answers(alice: User, alice_sync: Client) -> None:
    conversation, (_, a1, q2, _) = thread(alice)
    branches.delete(q2)
    branches.delete(Message.objects.get(pk=a1.pk))
    assert alice_sync.post(f"/api/v1/messages/{q2.pk}/restore").status_code == 204
    assert alice_sync.get(f"/api/v1/conversations/{conversation.pk}").status_code == 200
    assert shown(conversation) == ["q1", "a1", "q2", "a2"]


def test_what_is_asked_while_answers_are_stopped_goes_too(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, (_, _, q2, a2) = thread(alice)
    Message.objects.filter(pk=a2.pk).update(status=Status.QUEUED)

    def stop(answer: Message) -> Message:  # takes its time, in which somebody asks
        Message.objects.filter(pk=answer.pk).update(status=Status.STOPPED)
        late = Message.objects.create(
            conversation=conversation, parent=answer, role=Role.USER, content="late"
        )
        Conversation.objects.filter(pk=conversation.pk).update(active_leaf=late)
        return answer

    monkeypatch.setattr(services, "stop", stop)
    removed = branches.delete(q2)
    assert removed.messages == 3
    assert orphans() == 0
    assert shown(conversation) == ["q1", "a1"]
    branches.restore(removed.root)
    assert shown(conversation) == ["q1", "a1", "q2", "a2", "late"]


def test_nothing_is_asked_below_what_was_taken_away_meanwhile(alice: User) -> None:
    conversation, (_, a1, _, a2) = thread(alice)
    here = Conversation.objects.get(pk=conversation.pk)  # as a request has read it
    a2 = Message.objects.get(pk=a2.pk)
    branches.delete(Message.objects.get(pk=a1.pk))
    with pytest.raises(errors.MessageDeleted):
        services.ask(here, "And then?", parent=a2)
    with pytest.raises(errors.MessageDeleted):
        services.regenerate(a2)
    assert orphans() == 0
    assert Message.objects.count() == 4


def test_a_broken_tree_is_shown_as_far_as_it_goes(alice: User, alice_sync: Client) -> None:
    conversation, (_, a1, *_) = thread(alice)
    Message.objects.filter(pk=a1.pk).update(
        deleted_at=timezone.now()
    )  # as an older version left it
    assert alice_sync.get(f"/api/v1/conversations/{conversation.pk}").status_code == 200
    assert shown(conversation) == ["q2", "a2"]


def test_purging_never_takes_what_is_there(alice: User) -> None:
    conversation, (q1, a1, *_) = thread(alice)
    long_ago = timezone.now() - timedelta(days=2)
    Message.objects.filter(pk__in=[q1.pk, a1.pk]).update(deleted_at=long_ago)
    branches.purge(timezone.now() - timedelta(days=1))
    assert shown(conversation) == ["q1", "a1", "q2", "a2"]


def test_purging_leaves_what_can_still_come_back(alice: User) -> None:
    conversation, (_, a1, q2, a2) = thread(alice)
    now = timezone.now()
    Message.objects.filter(pk=a1.pk).update(deleted_at=now - timedelta(days=2))
    Message.objects.filter(pk__in=[q2.pk, a2.pk]).update(deleted_at=now - timedelta(hours=1))
    branches.purge(now - timedelta(days=1))
    assert conversation.messages.count() == 4
    branches.restore(Message.objects.get(pk=q2.pk))
    assert shown(conversation) == ["q1", "a1", "q2", "a2"]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["remove", "restore", "purge", "ask"]), st.integers(0, 30)),
        max_size=8,
    )
)
def test_every_order_of_steps_leaves_a_whole_tree(
    alice: User, steps: list[tuple[str, int]]
) -> None:
    conversation, _ = thread(alice)
    for step, number in steps:
        messages = list(conversation.messages.order_by("pk"))
        chosen = messages[number % len(messages)] if messages else None
        if step == "purge":
            branches.purge(timezone.now() - timedelta(minutes=number - 15))
        elif chosen is None:
            continue
        elif step == "remove" and chosen.deleted_at is None:
            branches.delete(chosen)
        elif step == "restore" and chosen.deleted_at is not None:
            branches.restore(chosen)
        elif step == "ask" and chosen.deleted_at is None:
            Message.objects.create(
                conversation=conversation, parent=chosen, role=Role.USER, content="more"
            )
        assert orphans() == 0
        assert shown(conversation) or conversation.active_leaf_id is None
    Message.objects.filter(conversation=conversation).delete()


def test_a_question_from_a_window_that_is_behind_is_not_sent(
    alice: User, client: Client, caller_server: Server, caller: ToolServer
) -> None:
    conversation, (_, a1, _, a2) = thread(alice)
    other = Message.objects.create(
        conversation=conversation, parent=a1, role=Role.USER, content="said elsewhere"
    )
    Conversation.objects.filter(pk=conversation.pk).update(active_leaf=other)
    client.force_login(alice)
    form: dict[str, Any] = {"content": "To the old branch", "after": a2.pk}
    page = client.post(f"/chat/{conversation.pk}/ask/", form)
    assert page.status_code == 409
    html = page.content.decode()
    assert "said elsewhere" in html
    assert "Your message was not sent" in html
    assert (page["HX-Retarget"], page["HX-Reswap"]) == ("#thread", "innerHTML")
    assert not Message.objects.filter(content="To the old branch").exists()
