"""Headings and states of the rows in the chat list."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.chat.conversation_list import list_rows
from apps.chat.models import CallState, Conversation, Message, Project, Status, Tag, ToolCall
from tests.chat.conftest import told

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Zurich"))


@pytest.mark.parametrize(
    ("moment", "heading"),
    [
        (datetime(2026, 11, 24, 1, 0, tzinfo=UTC), "Today"),  # a clock that is ahead
        (datetime(2026, 11, 22, 23, 30, tzinfo=UTC), "Today"),  # past midnight in Zürich
        (datetime(2026, 11, 22, 22, 30, tzinfo=UTC), "Yesterday"),
        (datetime(2026, 11, 21, 12, 0, tzinfo=UTC), "Previous 7 days"),
        (datetime(2026, 11, 16, 12, 0, tzinfo=UTC), "Previous 7 days"),
        (datetime(2026, 11, 15, 12, 0, tzinfo=UTC), "Earlier in November"),
        (datetime(2026, 10, 31, 12, 0, tzinfo=UTC), "October"),
        (datetime(2025, 11, 30, 12, 0, tzinfo=UTC), "November 2025"),
    ],
)
def test_date_heading_counts_days_in_the_time_zone_of_the_reader(
    moment: datetime, heading: str
) -> None:
    assert list_rows.date_heading(moment, NOW) == heading


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "x\0"])
def test_zone_of_an_unknown_name_is_utc(name: str) -> None:
    assert list_rows.zone_of(name) == ZoneInfo("UTC")


def state(conversation: Conversation) -> str:
    (row,) = list_rows.rows_of(conversation.owner, {conversation.pk})
    return row.state


def test_state_is_the_first_that_applies(alice: User) -> None:
    conversation = told(alice, "q", "a", status=Status.FAILED)
    assert state(conversation) == "failed"
    Conversation.objects.update(unread=True)
    assert state(conversation) == "unread"
    answer = conversation.messages.last()
    assert answer is not None
    Message.objects.filter(pk=answer.pk).update(status=Status.QUEUED, created=timezone.now())
    assert state(conversation) == "writing"
    call = ToolCall.objects.create(
        answer=answer, round=1, name="x", arguments="{}", state=CallState.WAITING
    )
    assert state(conversation) == "allow"
    # After a restart the answer is interrupted, and its call waits on.
    Message.objects.filter(pk=answer.pk).update(status=Status.INTERRUPTED)
    assert state(conversation) == "allow"
    call.delete()
    Conversation.objects.update(unread=False)
    assert state(conversation) == "failed"


def test_answer_of_a_dead_process_is_not_being_written(alice: User) -> None:
    conversation = told(alice, "q", "", status=Status.QUEUED)
    Message.objects.update(created=timezone.now() - timedelta(hours=1))
    assert state(conversation) == "failed"
    assert list_rows.writing_keys(alice) == set()


def test_attention_is_asked_for_new_answers_and_approvals(alice: User, bob: User) -> None:
    conversation = told(alice, "q", "a", status=Status.QUEUED)
    assert not list_rows.needs_attention(alice)
    ToolCall.objects.create(
        answer_id=conversation.active_leaf_id,
        round=1,
        name="x",
        arguments="{}",
        state=CallState.WAITING,
    )
    assert list_rows.needs_attention(alice)
    assert not list_rows.needs_attention(bob)
    ToolCall.objects.all().delete()
    Conversation.objects.update(unread=True)
    assert list_rows.needs_attention(alice)


def test_rows_are_grouped_and_go_on_under_the_last_heading(alice: User) -> None:
    pinned, old, new = (told(alice, "q", "a") for _ in range(3))
    Conversation.objects.filter(pk=pinned.pk).update(pinned=True)
    now = timezone.now()
    Conversation.objects.filter(pk=old.pk).update(updated=now - timedelta(days=1))
    project = Project.objects.create(owner=alice, name="P")
    told(alice, "q", "a")
    Conversation.objects.filter(pk__gt=new.pk).update(project=project)
    rows = list_rows.read_rows(alice, now=now)
    found = [(row.conversation.pk, row.heading) for row in rows]
    assert found == [(pinned.pk, "Pinned"), (new.pk, "Today"), (old.pk, "Yesterday")]
    part = list_rows.read_rows(alice, now=now, start=1, length=1, heading="Today")
    assert [(row.conversation.pk, row.heading) for row in part] == [(new.pk, "")]
    inside = list_rows.read_rows(alice, now=now, project=project.pk, grouped=False)
    assert [row.heading for row in inside] == [""]


def test_row_has_the_dot_of_its_first_tag(alice: User) -> None:
    conversation = told(alice, "q", "a")
    (row,) = list_rows.rows_of(alice, {conversation.pk})
    assert row.tag is None
    conversation.tags.add(Tag.objects.create(owner=alice, name="work"))
    (row,) = list_rows.rows_of(alice, {conversation.pk})
    assert str(row.tag) == "work"
    assert row.tag_colour in {2, 3, 4}
