"""The embedded server's prompt cache, on a real llama.cpp."""

from pathlib import Path

import httpx2

from tests.llama_process import LlamaProcess

PRESET = "You are a patient teacher. Explain step by step, and check every step. " * 6


def ask(llama: LlamaProcess, system: str, *turns: str) -> tuple[int, int]:
    """How many tokens of the prompt there were, and how many of them were not Reprocessed."""
    roles = ["user", "assistant"] * len(turns)
    messages = [{"role": "system", "content": system}] + [
        {"role": role, "content": text} for role, text in zip(roles, turns, strict=False)
    ]
    reply = httpx2.post(
        f"{llama.base_url}/chat/completions",
        json={"messages": messages, "max_tokens": 1},
        headers={"authorization": f"Bearer {llama.api_key}"},
        timeout=180,
    ).json()
    usage = reply["usage"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def test_long_conversation_keeps_its_cache_next_to_one_with_the_same_preset(
    tiny_model: Path,
) -> None:
    """llama.cpp's own default gives its slot to the other, and reads it all again."""
    with LlamaProcess(tiny_model, parallel=2, context_per_slot=8192) as llama:
        long = ["Why is the sky blue? " * 60, "Because of the way light scatters. " * 40]
        ask(llama, PRESET, *long, "Go on.")
        ask(llama, "Something else entirely.", "Unrelated words of another program. " * 20)
        ask(llama, PRESET, "A short question.")
        prompt, cached = ask(llama, PRESET, *long, "Go on.", "It does.", "And at night?")
    assert prompt > 2000
    assert cached > 0.9 * prompt
