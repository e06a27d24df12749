"""Files of programs, with OpenAI's SDK as it is, through the gateway to Django."""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import openai  # noqa: TID251 - a program that asks us
import pytest
from django.conf import settings as project
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.core.accounts.removal import remove_now
from apps.core.models import KeyScope
from apps.core.quotas import LimitReached
from apps.gateway.files import store
from apps.gateway.files.result_file import ResultFile
from apps.gateway.models import ProgramFile
from tests.gateway.sdk import sdk_of

pytestmark = pytest.mark.django_db(transaction=True)
LINES = b'{"custom_id": "a"}\n' * 3


@pytest.fixture
async def sdk(alice: User) -> AsyncIterator[openai.AsyncOpenAI]:
    async with await sdk_of(alice) as client:
        yield client


async def test_a_file_is_uploaded_listed_read_and_deleted(sdk: openai.AsyncOpenAI) -> None:
    made = await sdk.files.create(file=("../in.jsonl", LINES), purpose="batch")
    assert (made.filename, made.bytes, made.purpose) == ("in.jsonl", len(LINES), "batch")
    assert made.expires_at == pytest.approx(made.created_at + 30 * 24 * 3600, abs=5)
    second = await sdk.files.create(file=("two.jsonl", LINES), purpose="batch")
    assert [file.id async for file in sdk.files.list(limit=1)] == [second.id, made.id]
    assert (await sdk.files.content(made.id)).content == LINES
    path = (await ProgramFile.objects.aget(name="in.jsonl")).path
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await sdk.files.delete(made.id)).deleted
    assert not path.exists()
    with pytest.raises(openai.NotFoundError, match="You have no file"):
        await sdk.files.retrieve(made.id)


async def test_a_file_is_its_owners_alone(sdk: openai.AsyncOpenAI, bob: User) -> None:
    made = await sdk.files.create(file=("in.jsonl", LINES), purpose="batch")
    async with await sdk_of(bob) as other:
        assert (await other.files.list()).data == []
        for ask in (other.files.retrieve, other.files.content, other.files.delete):
            with pytest.raises(openai.NotFoundError):
                await ask(made.id)
    assert (await sdk.files.content(made.id)).content == LINES


async def test_refusals_are_the_sdks_errors(sdk: openai.AsyncOpenAI, alice: User) -> None:
    with pytest.raises(openai.BadRequestError, match="Only “batch” is"):
        await sdk.files.create(file=("in.jsonl", LINES), purpose="fine-tune")
    with pytest.raises(openai.NotFoundError):
        await sdk.files.retrieve("file-x")
    async with await sdk_of(alice, KeyScope.READ) as reader:
        with pytest.raises(openai.PermissionDeniedError, match="read only"):
            await reader.files.create(file=("in.jsonl", LINES), purpose="batch")
    stranger = sdk.with_options(api_key="wb_wrong")
    with pytest.raises(openai.AuthenticationError, match="Send a valid key"):
        await stranger.files.list()


async def test_files_are_limited(
    sdk: openai.AsyncOpenAI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sdk.files.create(file=("in.jsonl", LINES), purpose="batch")
    settings.PROGRAM_FILES_MB = 0
    with pytest.raises(openai.APIStatusError, match="together") as refused:
        await sdk.files.create(file=("in.jsonl", LINES), purpose="batch")
    assert refused.value.status_code == 413
    settings.PROGRAM_FILES_MB = 1
    monkeypatch.setattr(store, "MAX_MB", 0)
    with pytest.raises(openai.APIStatusError, match="larger than 0 MB"):
        await sdk.files.create(file=("in.jsonl", LINES), purpose="batch")
    settings.LIMITS = {**project.LIMITS, "files": 1}
    with pytest.raises(openai.RateLimitError, match="You have 1 files"):
        await sdk.files.create(file=("in.jsonl", LINES), purpose="batch")
    assert await ProgramFile.objects.acount() == 1


@pytest.mark.parametrize("limit", ["files", "bytes"])
def test_two_uploads_at_once_do_not_pass_a_limit_together(
    alice: User, settings: Settings, tmp_path: Path, limit: str
) -> None:
    both_written = threading.Barrier(2)
    if limit == "files":
        settings.LIMITS = {**project.LIMITS, "files": 1}
    else:
        settings.PROGRAM_FILES_MB = 1
    settings.PROGRAM_FILES_DIR = tmp_path

    def pieces() -> Iterator[bytes]:
        yield bytes(600_000)
        both_written.wait(60)

    def upload(_: int) -> bool:
        try:
            store.store_file(alice, "in.jsonl", pieces())
        except (LimitReached, store.FileTooLarge):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(upload, range(2))) == [False, True]
    [left] = ProgramFile.objects.all()
    assert [*tmp_path.iterdir()] == [left.path]


def test_an_expired_file_goes_and_so_do_those_of_a_removed_person(alice: User) -> None:
    old, new = (store.store_file(alice, "in.jsonl", [LINES]) for _ in range(2))
    past = timezone.now() - timedelta(seconds=1)
    ProgramFile.objects.filter(pk=old.pk).update(expires=past)
    assert store.find_file(alice, old.public_id) is None
    store.remove_expired_files()
    assert (old.path.exists(), new.path.exists()) == (False, True)
    remove_now(alice)
    assert not new.path.exists()


def test_results_are_seen_once_they_are_saved(
    alice: User, tmp_path: Path, settings: Settings
) -> None:
    settings.PROGRAM_FILES_DIR = tmp_path
    with ResultFile(alice, "empty.jsonl") as empty:
        assert empty.save() is None
    with suppress(ZeroDivisionError), ResultFile(alice, "out.jsonl") as out:
        out.write(LINES)
        raise ZeroDivisionError
    assert not [*tmp_path.iterdir()]
    with ResultFile(alice, "out.jsonl") as out:
        out.write(LINES)
        assert not store.files_of(alice).exists()
        saved = out.save()
    assert [*store.files_of(alice)] == [saved]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [LINES]


def test_files_of_a_killed_process_are_removed_a_day_later(
    alice: User, tmp_path: Path, settings: Settings
) -> None:
    settings.PROGRAM_FILES_DIR = tmp_path / "files"
    store.remove_strays()  # nothing was ever uploaded
    known = store.store_file(alice, "in.jsonl", [LINES]).path
    stray, fresh = known.with_name("0" * 32), known.with_name("1" * 32)
    for path in (stray, fresh):
        path.write_bytes(LINES)
    before = (timezone.now() - timedelta(days=2)).timestamp()
    for path in (stray, known):
        os.utime(path, (before, before))
    store.remove_strays()
    assert {*known.parent.iterdir()} == {known, fresh}
