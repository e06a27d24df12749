"""The lease of an import: one holder at a time, lost when cancelled."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from apps.datasets.imports import import_queue
from apps.datasets.imports.lease import ImportLease, LeaseLost
from apps.datasets.models import Upload, UploadState


@pytest.fixture
def upload(alice: User) -> Upload:
    return Upload.objects.create(owner=alice, file_name="a", size=1, state=UploadState.QUEUED)


def claim(upload: Upload) -> ImportLease:
    lease = ImportLease.claim(str(upload.pk))
    assert lease is not None
    return lease


def test_claim_holds_the_import_and_counts_attempts(upload: Upload) -> None:
    claim(upload)
    assert ImportLease.claim(str(upload.pk)) is None
    upload.refresh_from_db()
    assert upload.attempts == 1


@pytest.mark.parametrize("state", [UploadState.WAITING, UploadState.DONE, UploadState.FAILED])
def test_claim_finds_only_imports_in_progress(upload: Upload, state: str) -> None:
    Upload.objects.update(state=state)
    assert ImportLease.claim(str(upload.pk)) is None


def test_claim_takes_over_an_expired_lease(upload: Upload) -> None:
    first = claim(upload)
    Upload.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = claim(upload)
    second.write(done_rows=5)
    with pytest.raises(LeaseLost):
        first.write(done_rows=3)
    upload.refresh_from_db()
    assert (upload.done_rows, upload.attempts) == (5, 2)


def test_write_renews_the_lease(upload: Upload) -> None:
    lease = claim(upload)
    Upload.objects.update(lease_until=timezone.now())
    lease.renew()
    assert ImportLease.claim(str(upload.pk)) is None


def test_write_fails_once_the_import_is_cancelled(upload: Upload) -> None:
    lease = claim(upload)
    Upload.objects.update(cancelled=True)
    with pytest.raises(LeaseLost):
        lease.renew()


def test_abandoned_imports_are_reported_once_in_a_while(upload: Upload) -> None:
    assert import_queue.abandoned_imports() == []
    Upload.objects.update(enqueued_at=timezone.now() - timedelta(minutes=5))
    assert import_queue.abandoned_imports() == [str(upload.pk)]
    assert import_queue.abandoned_imports() == []  # its worker has time to start
