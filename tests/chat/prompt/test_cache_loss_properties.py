"""Properties of lost prompt cache: it is bounded, and reported only if it is worth a sentence."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from apps.chat.prompt.cache_loss import MIN_LOST_TOKENS, CachedRequest, find_loss

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@st.composite
def requests(draw: st.DrawFn) -> CachedRequest:
    prompt = draw(st.integers(1, 20_000))
    return CachedRequest(
        model=draw(st.sampled_from(["qwen", "llama"])),
        system_prompt=draw(st.none() | st.integers(1, 2)),
        cut_before_message=draw(st.none() | st.integers(1, 3)),
        prompt_tokens=prompt,
        cached_tokens=draw(st.integers(0, prompt)),
        completion_tokens=draw(st.integers(0, 500)),
        at=NOON + timedelta(minutes=draw(st.integers(0, 60))),
        tools=draw(st.sampled_from(["", "f00"])),
    )


@given(requests(), requests(), st.booleans(), st.booleans())
def test_a_loss_is_never_more_than_the_prompt(
    now: CachedRequest, before: CachedRequest, is_sibling: bool, others: bool
) -> None:
    loss = find_loss(now, before, is_sibling=is_sibling, others_with_same_prompt=others)
    if loss is None:
        return
    assert MIN_LOST_TOKENS <= loss.tokens <= now.prompt_tokens - now.cached_tokens
    assert loss.reason
    assert loss.reason[0].islower()  # it ends a sentence


@given(requests(), requests())
def test_a_whole_cache_is_no_loss(now: CachedRequest, before: CachedRequest) -> None:
    cached = CachedRequest(
        now.model, now.system_prompt, None, now.prompt_tokens, now.prompt_tokens, 0, now.at
    )
    assert find_loss(cached, before) is None
    assert find_loss(now, None) is None


@given(requests(), requests())
def test_more_cache_never_makes_a_loss(now: CachedRequest, before: CachedRequest) -> None:
    more = CachedRequest(
        now.model, now.system_prompt, now.cut_before_message, now.prompt_tokens,
        min(now.prompt_tokens, now.cached_tokens + 100), now.completion_tokens, now.at, now.tools,
    )  # fmt: skip
    if find_loss(now, before) is None:
        assert find_loss(more, before) is None
