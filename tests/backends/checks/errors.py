"""Everything that a person can get wrong, and the sentence that they read then."""

import pytest

from tests.backends.backend import Backend
from tests.backends.workbench import Workbench


async def a_wrong_key(backend: Backend, workbench: Workbench) -> None:
    if not backend.api_key:
        pytest.skip("it asks for no key")
    known = await workbench.add(backend, key="sk-wrong")
    assert known["state"] == "unauthorized"
    assert known["error"] == "The API key was rejected. Update it under Servers."
    answer = await workbench.ask(backend.chat or "alpha")
    assert (answer.error, answer.sentence) == ("unauthorized", known["error"])


async def an_unknown_model(backend: Backend, workbench: Workbench) -> None:
    if not backend.knows_models:
        pytest.skip("it answers to every name of a model")
    await workbench.add(backend)
    answer = await workbench.ask("nobody-knows")
    assert answer.error == "unknown_model", answer.sentence
    assert "nknown model" in answer.sentence


async def a_broken_model(backend: Backend, workbench: Workbench) -> None:
    if backend.broken is None:
        pytest.skip("no model can be broken while it answers")
    await workbench.add(backend)
    answer = await workbench.ask(backend.broken)
    assert answer.error == "load_failed", answer.sentence
    assert answer.sentence.startswith("The model failed to start: ")
    # The others are as good as before.
    answer = await workbench.ask(backend.chat)
    assert answer.body["status"] == "complete", answer.sentence


async def a_prompt_too_long(backend: Backend, workbench: Workbench) -> None:
    if not backend.chat:
        pytest.skip("no chat model")
    await workbench.add(backend)
    answer = await workbench.ask(backend.chat, "x" * 20_000)
    assert answer.error == "prompt_too_long", (answer.error, answer.sentence)
    assert answer.sentence.endswith("Shorten it, or start the server with a larger -c.")


async def a_forgotten_part_of_the_address(backend: Backend, workbench: Workbench) -> None:
    if backend.forgotten is None:
        pytest.skip("its address has no part of its own")
    url, words = backend.forgotten
    known = await workbench.add(backend, url=url)
    assert known["state"] == "unreachable"
    assert words in known["error"]
