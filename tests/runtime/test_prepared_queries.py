"""Queries that are put together once say and do what Django's own would."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.core.models import ApiKey
from apps.runtime.prepared_queries import Lookup, insert, update

pytestmark = pytest.mark.django_db

OF_ALICE = Lookup(
    lambda name, since: ApiKey.objects.select_related("user").filter(
        name=name, user__username="alice", token_hash__gte=since
    )
)


@pytest.fixture
def keys(alice: User, bob: User) -> list[ApiKey]:
    used = timezone.now()
    return [
        ApiKey.objects.create(user=user, name=name, start=str(n), token_hash=str(n), last_used=used)
        for n, (user, name) in enumerate([(alice, "a"), (bob, "a"), (alice, "b"), (alice, "a")])
    ]


def fields_of(row: ApiKey) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_it_finds_what_the_queryset_finds(keys: list[ApiKey]) -> None:
    for name, since in [("a", "0"), ("a", "1"), ("b", "0"), ("c", "0")]:
        wanted = ApiKey.objects.filter(name=name, user__username="alice", token_hash__gte=since)
        found = OF_ALICE.all(name, since)
        assert [fields_of(key) for key in found] == [fields_of(key) for key in wanted]
        assert OF_ALICE.first(name, since) == wanted.first()


def test_what_is_selected_with_it_is_there(keys: list[ApiKey]) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = OF_ALICE.first("a", "0")
        assert found is not None
        assert found.user.username == "alice"
    assert len(queries) == 1


def test_a_found_row_can_be_saved(keys: list[ApiKey]) -> None:
    found = OF_ALICE.first("b", "0")
    assert found is not None
    found.name = "c"
    found.save()
    assert ApiKey.objects.get(pk=found.pk).name == "c"


def test_a_new_row_is_as_if_saved(alice: User) -> None:
    key = ApiKey(user=alice, name="laptop", start="wb_12345", token_hash="1")
    insert(key)
    assert fields_of(ApiKey.objects.get()) == fields_of(key)
    assert key.created is not None
    key.delete()
    assert not ApiKey.objects.exists()


def test_a_new_row_keeps_to_the_constraints(keys: list[ApiKey]) -> None:
    with pytest.raises(IntegrityError):
        insert(ApiKey(user=keys[0].user, name="twice", start="", token_hash="0"))


def test_only_the_named_fields_change(keys: list[ApiKey]) -> None:
    key, before = keys[0], fields_of(keys[0])
    key.name, key.start, key.last_used = "new", "not saved", timezone.now() + timedelta(days=1)
    update(key, "name", "last_used")
    changed = {"name": "new", "last_used": key.last_used}
    assert fields_of(ApiKey.objects.get(pk=key.pk)) == before | changed
    assert ApiKey.objects.filter(name="new").count() == 1


def test_what_has_changed_meanwhile_is_left_alone(keys: list[ApiKey]) -> None:
    key = keys[0]
    key.name = "new"
    assert not update(key, "name", name=["b", "c"], start=["0"])
    assert ApiKey.objects.get(pk=key.pk).name == "a"
    assert update(key, "name", name=["b", "a"], start=["0"])
    assert ApiKey.objects.get(pk=key.pk).name == "new"
