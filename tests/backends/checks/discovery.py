"""What the workbench finds out of a backend, and that finding it out loads nothing."""

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench

SWAPPING = {"router", "llama-swap"}


async def every_fact(backend: Backend, workbench: Workbench) -> None:
    known = await workbench.add(backend, url=backend.counted_url)
    assert (known["state"], known["kind"]) == ("ready", backend.kind), known["error"]
    models = {model["id"]: model for model in known["models"]}
    named = {backend.chat, backend.other, backend.embeddings} - {None, ""}
    assert named <= models.keys()
    if backend.kind in SWAPPING:
        before = {name: model["state"] for name, model in models.items()}
        again = (await workbench.look())["models"]
        assert {model["id"]: model["state"] for model in again} == before
        assert not backend.relay or backend.relay.counts.asked == []
    first = backend.chat or backend.embeddings
    assert first is not None
    if backend.chat:
        answer = await workbench.ask(first)
        assert answer.body["status"] == "complete", answer.sentence
    known = await workbench.look()
    model = next(model for model in known["models"] if model["id"] == first)
    slots = model["slots"] if backend.kind in SWAPPING else known["slots"]["total"]
    assert (slots or known["slots"]["total"]) == backend.slots
    if backend.kind in SWAPPING and model["state"] != "unknown":
        assert model["state"] == "loaded"
        assert "unload" in model["actions"]
    if backend.kind in {"llama-server", *SWAPPING}:
        assert model["context"] == backend.context
        assert model["embeddings"] is (None if backend.context is None else not backend.chat)
        unified = model["unified"] if backend.kind in SWAPPING else known["slots"]["unified"]
        assert unified is backend.unified
    if backend.embeddings and backend.kind == "litellm":
        found = next(model for model in known["models"] if model["id"] == backend.embeddings)
        assert found["embeddings"] is True
