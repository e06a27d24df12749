"""How long vectors are kept."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.embeddings import retention
from apps.embeddings.models import Embedding, EmbeddingModel

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
