"""Classifiers as models of programs, on a real embedding server."""

from collections.abc import Awaitable, Callable

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from apps.classifiers.evaluation.thresholds.decision import Thresholds
from apps.classifiers.models import Classifier, Run
from apps.core.label_models.label_model import LabelModel, LabelModelError, LabelScores
from apps.core.label_models.registry import list_models, provider_of
from apps.embeddings.background_saves import wait_until_saved
from apps.llm.client import close_clients
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)
GREETING = "HELLO THERE GOOD MORNING 99"


def find(owner: User, name: str) -> LabelModel | None:
    provider = provider_of(name)
    assert provider is not None
    return provider.find_model(owner.pk, name)


def score(owner: User, name: str, text: str = GREETING, lane: str = "interactive") -> LabelScores:
    provider, model = provider_of(name), find(owner, name)
    assert provider is not None
    assert model is not None
    return _in_loop(lambda: provider.score_text(owner.pk, model, text, lane))


def _in_loop(call: Callable[[], Awaitable[LabelScores]]) -> LabelScores:
    async def run() -> LabelScores:
        try:
            return await call()
        finally:
            await wait_until_saved()
            await close_clients()
            await close_async_redis()

    return async_to_sync(run)()


def test_labels_come_with_all_probabilities_in_every_lane(
    alice: User, embedding_server: Server
) -> None:
    name = f"classifier/{factories.trained(alice).pk}"
    for lane in ("interactive", "agent", "batch", "idle"):
        found = score(alice, name, f"{GREETING} {lane}", lane)
        assert (found.label, found.version) == ("hello", 1)
        assert set(found.probabilities) == set(factories.LABELS)
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert found.ranked[0][1] == max(found.probabilities.values())


def test_labels_that_thresholds_refuse_are_marked(alice: User, embedding_server: Server) -> None:
    made = factories.trained(alice)
    name, run = f"classifier/{made.pk}", made.current
    assert run is not None
    for thresholds, refusal in [
        (Thresholds(unsure=1.0), "unsure"),
        (Thresholds(familiar=1e9), "none_of_these"),
        (Thresholds(unsure=0.0), ""),
    ]:
        Run.objects.filter(pk=run.pk).update(thresholds=thresholds.as_dict())
        found = score(alice, name)
        assert (found.label, found.refusal) == ("hello", refusal)


def test_only_trained_ones_of_their_owner_are_listed(
    alice: User, bob: User, embedding_server: Server
) -> None:
    made = factories.trained(alice)
    untrained = Classifier.objects.create(owner=alice, name="Topics", options={})
    name = f"classifier/{made.pk}"
    [listed] = list_models(alice.pk)
    assert listed.names == (name, "classifier/Topics")
    assert find(alice, "classifier/Topics") == find(alice, name) == listed
    assert list_models(bob.pk) == []
    assert find(bob, name) is find(bob, "classifier/Topics") is None
    with pytest.raises(LabelModelError, match="not trained yet") as refused:
        score(alice, f"classifier/{untrained.pk}")
    assert (refused.value.status, refused.value.retry_after) == (404, None)


def test_a_name_of_several_is_no_name(alice: User, embedding_server: Server) -> None:
    made = factories.trained(alice)
    twin = Classifier.objects.create(
        owner=alice, name="Topics", options={}, current_id=made.current_id
    )
    assert [one.aliases for one in list_models(alice.pk)] == [(), ()]
    with pytest.raises(LabelModelError, match=f"classifier/{twin.pk}, classifier/{made.pk}"):
        find(alice, "classifier/Topics")
    Classifier.objects.filter(pk=twin.pk).update(name="12")
    assert find(alice, f"classifier/{twin.pk}").names == (f"classifier/{twin.pk}",)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "9" * 40, "²", "Topics/1"])
def test_a_name_that_nobody_has_is_unknown(alice: User, name: str) -> None:
    assert find(alice, f"classifier/{name}") is None


def test_what_it_cannot_do_is_told(alice: User, embedding_server: Server) -> None:
    name = f"classifier/{factories.trained(alice).pk}"
    with pytest.raises(LabelModelError, match=r"^The text") as refused:
        score(alice, name, "  ")
    assert refused.value.status == 400
    factories.exchange_embedding_model()
    with pytest.raises(LabelModelError, match="retrain") as refused:
        score(alice, name, "a new text")
    assert (refused.value.status, refused.value.retry_after) == (503, None)


def test_an_embedding_server_that_is_away_is_told(alice: User, embedding_server: Server) -> None:
    name = f"classifier/{factories.trained(alice).pk}"
    embedding_server.base_url = "http://127.0.0.1:9/v1"
    embedding_server.save(update_fields=["base_url"])
    with pytest.raises(LabelModelError, match="The embedding server") as refused:
        score(alice, name, "something new")
    assert refused.value.status == 503
    assert (refused.value.retry_after or 0) > 0
