"""The budget of a server's slot files."""

from pathlib import Path

import pytest
from pytest_django import Settings

from apps.llm.slot_files import SavedSlot
from apps.servers.models import Server, SlotFile
from apps.servers.slot_files import store
from apps.servers.targets import Target

pytestmark = pytest.mark.django_db

SIZE = 1000


@pytest.fixture
def target(settings: Settings) -> Target:
    settings.SLOT_FILES_BYTES = 3 * SIZE
    facts = {"models": [{"id": "qwen", "cache_key": "a"}]}
    server = Server.objects.create(name="One", base_url="http://one.test/v1", stored_facts=facts)
    return Target(server, "qwen")


def keep(target: Target, prefix: str, source: str = "") -> SlotFile | None:
    file = store.reserve(target, prefix, 10, source)
    if file is not None:
        store.record_saved(file, SavedSlot(10, SIZE), 1.0)
    return file


def prefixes() -> set[str]:
    return set(SlotFile.objects.exclude(prefix="").values_list("prefix", flat=True))


def test_the_least_recently_used_file_is_written_over(target: Target) -> None:
    first = keep(target, "1")
    for prefix in ("2", "3"):
        keep(target, prefix)
    assert first is not None
    store.record_restored(target, first, 2.0)
    keep(target, "4")
    assert prefixes() == {"1", "3", "4"}
    assert SlotFile.objects.count() == 3
    assert store.bytes_on_disk(target.server) == 3 * SIZE


def test_a_beginning_has_one_file(target: Target) -> None:
    first, again = keep(target, "1"), keep(target, "1")
    assert first is not None
    assert again is not None
    assert first.name == again.name


def test_what_is_evicted_counts_until_it_is_emptied(target: Target, settings: Settings) -> None:
    for prefix in ("1", "2", "3"):
        keep(target, prefix)
    settings.SLOT_FILES_BYTES = SIZE
    assert keep(target, "4") is None
    (evicted, *_) = store.to_empty(target)
    assert prefixes() == {"3"}
    store.record_emptied(evicted, 48)
    assert store.bytes_on_disk(target.server) == 2 * SIZE + 48


def test_a_shared_folder_loses_evicted_files(
    target: Target, settings: Settings, tmp_path: Path
) -> None:
    settings.SLOT_FILES_FOLDER = str(tmp_path)
    for prefix in ("1", "2", "3"):
        file = keep(target, prefix, "conversation:1" if prefix == "2" else "")
        assert file is not None
        (tmp_path / file.name).touch()
    (tmp_path / "other").touch()
    keep(target, "4")
    store.drop_source("conversation:1")
    assert prefixes() == {"3", "4"}
    assert len(list(tmp_path.iterdir())) == 2


def test_the_longest_beginning_is_found_of_the_same_model(target: Target) -> None:
    for prefix in ("short", "long"):
        keep(target, prefix)
    found = store.find(target, ["short", "long", "longer"])
    assert found is not None
    assert found.prefix == "long"
    other = {"models": [{"id": "qwen", "cache_key": "b"}]}
    changed = Target(Server(pk=target.server.pk, stored_facts=other), "qwen")
    assert store.find(changed, ["short", "long"]) is None
