"""Prompts that a cache knows, and prompts that it cannot know."""

from itertools import takewhile

import pytest

from apps.servers.models import Kind, Server
from apps.servers.services import Target
from apps.tuning.sweep.measuring.stream import build_request
from apps.tuning.sweep.prompts import SCHEMA, cached_prompt, text, uncached_prompt


def shared(one: str, other: str) -> int:
    """Characters until the first that differs."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def test_text_has_the_length_asked_for_and_is_always_the_same() -> None:
    assert [len(text(length)) for length in (1, 100, 5000)] == [1, 100, 5000]
    assert text(300) == text(300)
    assert text(300, seed=1) != text(300)


def test_cached_prompts_share_all_but_their_end() -> None:
    one, other = cached_prompt(400), cached_prompt(400)
    assert one != other
    assert shared(one, other) >= 400


def test_uncached_prompts_share_nothing() -> None:
    prompts = [uncached_prompt(400) for _ in range(20)]
    assert max(shared(prompts[0], other) for other in prompts[1:]) < 16


@pytest.mark.parametrize(
    ("kind", "is_json", "ignores"),
    [
        (Kind.LLAMA_SERVER, False, True),
        (Kind.LLAMA_SWAP, False, True),
        (Kind.LLAMA_SERVER, True, False),
        (Kind.OPENAI, False, False),
    ],
)
def test_only_llama_cpp_is_asked_to_go_on_past_the_end(
    kind: Kind, is_json: bool, ignores: bool
) -> None:
    target = Target(Server(name="S", base_url="http://x/v1", kind=kind), "m")
    request = build_request(target, [{"role": "user", "content": "x"}], 9, is_json=is_json)
    assert ("ignore_eos" in request.params) is ignores
    assert request.response_format == (SCHEMA if is_json else None)
    assert request.max_tokens == 9
