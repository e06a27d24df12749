"""How long vectors are kept."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.embeddings import retention
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.embeddings.tasks import sweep_vectors

pytestmark = pytest.mark.django_db


@pytest.fixture
def model() -> EmbeddingModel:
    return EmbeddingModel.objects.create(fingerprint="f", name="m", dimensions=1)


def stored(model: EmbeddingModel, name: bytes, days: int | None) -> Embedding:
    expires = None if days is None else timezone.now().date() + timedelta(days=days)
    return Embedding.objects.create(
        model=model, text_hash=name * 32, vector=b"0000", expires=expires
    )


def test_what_has_expired_goes_and_the_rest_gets_an_end(
    model: EmbeddingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PIECE_ROWS", 2)
    for name in (b"a", b"b", b"c"):
        stored(model, name, 0)
    kept, old = stored(model, b"d", 1), stored(model, b"e", None)

    assert retention.delete_expired() == 3

    assert set(Embedding.objects.values_list("pk", flat=True)) == {kept.pk, old.pk}
    old.refresh_from_db()
    assert old.expires == retention.expiry_date(lasting=True)


def test_a_predicted_text_that_is_trained_on_stays(model: EmbeddingModel) -> None:
    row = stored(model, b"a", 7)
    retention.extend_expiry("f", [b"a" * 32])
    row.refresh_from_db()
    assert row.expires == retention.expiry_date(lasting=True)


def test_predicted_texts_need_not_be_kept_at_all(settings: Settings) -> None:
    settings.KEEP_PREDICTED_DAYS = 0
    assert retention.expiry_date(lasting=False) is None
    assert retention.expiry_date(lasting=True) is not None


def test_what_came_after_another_model_is_forgotten(model: EmbeddingModel) -> None:
    before = stored(model, b"a", 7)
    newest = retention.newest_key()
    stored(model, b"b", 7)
    retention.delete_newer_than("f", newest)
    assert list(Embedding.objects.values_list("pk", flat=True)) == [before.pk]


def test_a_recent_expiry_is_not_written_again(model: EmbeddingModel) -> None:
    end = retention.expiry_date(lasting=True)
    assert end is not None
    recent = end - timedelta(days=retention.RENEW_DAYS)
    row = Embedding.objects.create(model=model, text_hash=b"a" * 32, vector=b"0000", expires=recent)
    retention.extend_expiry("f", [b"a" * 32])
    row.refresh_from_db()
    assert row.expires == recent


def test_other_texts_and_models_keep_their_expiry(model: EmbeddingModel) -> None:
    other = EmbeddingModel.objects.create(fingerprint="g", name="m", dimensions=1)
    rows = [stored(model, b"b", 7), stored(other, b"a", 7)]
    before = [row.expires for row in rows]
    retention.extend_expiry("f", [b"a" * 32])
    for row in rows:
        row.refresh_from_db()
    assert [row.expires for row in rows] == before


def test_deleting_newer_vectors_leaves_other_models(model: EmbeddingModel) -> None:
    other = EmbeddingModel.objects.create(fingerprint="g", name="m", dimensions=1)
    newest = retention.newest_key()
    kept = stored(other, b"a", 7)
    stored(model, b"b", 7)
    retention.delete_newer_than("f", newest)
    assert list(Embedding.objects.values_list("pk", flat=True)) == [kept.pk]


def test_newest_key_of_an_empty_table_is_zero(db: None) -> None:
    assert retention.newest_key() == 0


def test_the_sweep_deletes_expired_vectors(model: EmbeddingModel) -> None:
    stored(model, b"a", -1)
    kept = stored(model, b"b", 1)
    sweep_vectors()
    assert list(Embedding.objects.values_list("pk", flat=True)) == [kept.pk]
