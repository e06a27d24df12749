"""Tell when the embedding model behind a server is not that of the training."""

from apps.classifiers.prediction import predictor
from apps.embeddings.models import EmbeddingModel
from apps.embeddings.services import (
    server_fingerprint,
)
from apps.servers.models import Server, Use
from apps.servers.services import default_target


def warnings(card: predictor.ModelCard, server: Server) -> list[str]:
    """List reasons why an imported classifier may be unable to predict here, from the last known
    facts of its server. Sends nothing."""
    name = card.embedding_model
    others = [model.id for model in server.model_facts if model.embeddings]
    if name not in server.model_ids:
        there = f"which offers {', '.join(others)}" if others else "which does not list this model"
        return [
            f"This classifier needs the embedding model “{name}” from server “{server.name}”, "
            f"{there}. It cannot predict until that server offers “{name}”."
        ]
    if server_fingerprint(server, name) != card.embedding_fingerprint and not _may_match(
        server, card
    ):
        return [describe_changed_model(card, name)]
    default = default_target(Use.EMBEDDINGS).model
    if default not in {name, "default"}:
        return [
            f"This classifier uses “{name}”, which is not the default embedding model "
            f"(“{default}”). The server must offer both."
        ]
    return []


def _may_match(server: Server, card: predictor.ModelCard) -> bool:
    """True if a server that does not report its weights may have the model of a card."""
    name = card.embedding_model
    told = any(model.id == name and model.weights for model in server.model_facts)
    here = EmbeddingModel.objects.filter(fingerprint=card.embedding_fingerprint, name=name)
    return not told and here.exists()


def describe_changed_model(card: predictor.ModelCard, now: str) -> str:
    """Fingerprints differ: by name, or, worse to notice, behind the same name."""
    name = card.embedding_model
    if name != now:
        return (
            f"This classifier needs the embedding model “{name}”, but the server now runs "
            f"“{now}”. Start “{name}” again, or retrain the classifier."
        )
    return (
        f"The model behind “{name}” has changed since training, so predictions would be wrong. "
        "Start the original model, or retrain the classifier."
    )
