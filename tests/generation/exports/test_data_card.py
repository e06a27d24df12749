"""The data card of a job."""

import json

from apps.batch.models import Item
from apps.generation.exports.data_card import data_card
from apps.generation.models import Job


def test_data_card_counts_accepted_and_rejected_rows(job: Job) -> None:
    card = data_card(job)
    assert card["counts"]["accepted"] == 5
    assert card["rows_asked_for"] == 10
    assert {(left["status"], left["code"]) for left in card["left_out"]} == {
        ("rejected", "length"),
        ("failed", "stalled"),
    }
    assert all(left["reason"] for left in card["left_out"])
    assert card["tokens"]["prompt"] == 300
    assert card["tokens"]["written"] == 100


def test_data_card_says_how_to_reproduce_the_rows(job: Job) -> None:
    card = data_card(job)
    assert card["seed"] == job.spec.seed
    assert card["recipe"] == job.recipe
    assert card["prompts"] == ["Write a {{ sentiment }} review of a {{ product }}."]
    assert card["fields"] == job.spec.recipe.field_names
    assert card["parameters"] == {"temperature": 0.9, "min_p": 0.05, "max_tokens": 200}
    assert card["system_message"].startswith("You write realistic synthetic data.")
    assert card["filters"]["near_duplicates"] is None


def test_data_card_counts_edited_rows(job: Job) -> None:
    assert data_card(job)["edited_by_hand"] == 0
    Item.objects.filter(batch_id=job.batch_id, index=0).update(edited={"text": "B"})
    assert data_card(job)["edited_by_hand"] == 1


def test_data_card_names_no_removed_server(job: Job) -> None:
    assert job.batch.server is not None
    job.batch.server.delete()
    assert data_card(Job.objects.get(pk=job.pk))["server"] is None


def test_data_card_is_json(job: Job) -> None:
    assert json.loads(json.dumps(data_card(job)))["name"] == "Reviews"
