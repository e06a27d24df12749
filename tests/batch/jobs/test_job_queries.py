"""Questions about several jobs."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.batch import services
from apps.batch.models import Batch, BatchStatus, ItemStatus
from apps.servers.models import Server
from apps.servers.services import Target
from tests.batch.conftest import MakeBatch

pytestmark = pytest.mark.django_db(transaction=True)


def test_batches_of_a_server_are_those_of_one_model_and_kind(
    make_batch: MakeBatch, server: Server
) -> None:
    first, second, other = make_batch(1), make_batch(1), make_batch(1)
    Batch.objects.filter(pk=other.pk).update(model="another")
    assert list(services.batches_of(first.handler, server, first.model)) == [second, first]
    assert services.target_of(other.pk) == Target(server, "another")


def test_owned_batches_are_those_of_one_person_and_kind(
    make_batch: MakeBatch, alice: User, bob: User
) -> None:
    first, second, theirs, other = (make_batch(1) for _ in range(4))
    Batch.objects.filter(pk=theirs.pk).update(owner=bob)
    Batch.objects.filter(pk=other.pk).update(handler="another")
    assert list(services.owned_batches(alice, first.handler)) == [second, first]


def test_a_job_is_stalled_while_its_open_rows_wait(make_batch: MakeBatch) -> None:
    batch, now = make_batch(2), timezone.now()
    since = now - timedelta(minutes=30)
    assert not services.stalled_batches(since).exists()  # it has not started
    long_ago = now - timedelta(hours=1)
    Batch.objects.update(status=BatchStatus.RUNNING, started=long_ago)
    assert services.stalled_batches(since).get() == batch
    Batch.objects.update(resumes_on=now.date())
    assert not services.stalled_batches(since).exists()
    Batch.objects.update(resumes_on=None)
    batch.items.filter(index=0).update(status=ItemStatus.ACCEPTED, finished=now)
    assert not services.stalled_batches(since).exists()
    batch.items.update(status=ItemStatus.ACCEPTED, finished=long_ago)
    assert not services.stalled_batches(since).exists()  # nothing is open


def test_rows_of_active_jobs_are_counted_by_status(make_batch: MakeBatch) -> None:
    batch, over = make_batch(3), make_batch(2)
    Batch.objects.filter(pk=over.pk).update(status=BatchStatus.CANCELLED)
    batch.items.filter(index=0).update(status=ItemStatus.ACCEPTED)
    assert services.count_active_rows() == {ItemStatus.ACCEPTED: 1, ItemStatus.PENDING: 2}
