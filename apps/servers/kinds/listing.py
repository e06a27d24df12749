"""GET /v1/models, which every kind answers with its own fields."""

from typing import Any

from apps.servers.facts.server_facts import ModelFacts

SOURCE = "the server's /v1/models"

# Field names for the context of a model: llama-server's router, vLLM, LM Studio,
# OpenRouter.
CONTEXT_FIELDS = ("context_length", "max_model_len", "max_context_length", "context_window")


def items_of(listing: Any) -> list[dict[str, Any]]:
    data = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(data, list):
        return []
    return [item for item in data if isinstance(item, dict) and isinstance(item.get("id"), str)]


def model_of(item: dict[str, Any]) -> ModelFacts:
    """The facts about a model in the listing itself."""
    meta = _dict(item.get("meta"))
    modalities = _dict(item.get("architecture")).get("input_modalities")
    model = ModelFacts(
        id=item["id"],
        name=str(item.get("name") or ""),
        aliases=[a for a in item.get("aliases") or [] if isinstance(a, str) and a != item["id"]],
    )
    model.learn(
        SOURCE,
        context=number(meta.get("n_ctx")),
        context_trained=number(meta.get("n_ctx_train")),
        weights=[w for name in ("n_params", "size", "n_embd") if (w := number(meta.get(name)))],
    )
    model.learn(
        SOURCE, context=next(filter(None, (number(item.get(f)) for f in CONTEXT_FIELDS)), None)
    )
    if isinstance(modalities, list):
        model.learn(SOURCE, vision="image" in modalities, audio="audio" in modalities)
    return model


def number(value: Any) -> int | None:
    """A positive whole number, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
