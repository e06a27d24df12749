"""What the page says of slot files."""

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.servers.models import Server, SlotFile, SlotRestores
from apps.servers.pages.slots.slot_file_rows import read_summaries, slot_file_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def saving(db: None) -> Server:
    facts = {"process": "1", "models": [{"id": "qwen", "slot_files": True, "cache_key": "a"}]}
    server = Server.objects.create(name="One", base_url="http://one.test/v1", stored_facts=facts)
    for name, prefix in (("live", "hash"), ("free", "")):
        SlotFile.objects.create(
            server=server, name=name, prefix=prefix, size=2_000_000, used_at=timezone.now()
        )
    return server


def values(server: Server) -> list[str]:
    return [row.value for row in slot_file_rows(server, read_summaries([server])[server.pk])]


def test_files_and_saved_seconds_are_shown(saving: Server) -> None:
    SlotRestores.objects.create(
        server=saving, model="qwen", cache_key="a", count=12, seconds_saved=75
    )
    assert values(saving) == ["1 file, 3.8\xa0MB of 10.0\xa0GB", "restored 12 times, 75 s saved"]


def test_a_server_that_restores_nothing_says_so_until_it_is_started_again(saving: Server) -> None:
    SlotRestores.objects.create(
        server=saving, model="qwen", cache_key="a", process="1", failed_in_row=3, reason="Why."
    )
    assert values(saving)[1:] == ["off after 3 failures in a row. Why."]
    saving.stored_facts = {**saving.stored_facts, "process": "2"}
    assert values(saving)[1:] == []


def test_no_file_is_none_yet(saving: Server) -> None:
    SlotFile.objects.all().delete()
    assert values(saving) == ["none yet"]


def test_no_budget_is_off(saving: Server, settings: Settings) -> None:
    settings.SLOT_FILES_BYTES = 0
    assert values(saving) == ["off: WORKBENCH_SLOT_FILES_GB is 0"]


def test_a_server_without_a_folder_is_not_mentioned(saving: Server) -> None:
    saving.stored_facts = {"models": [{"id": "qwen", "slot_files": False}]}
    assert read_summaries([saving]) == {}
