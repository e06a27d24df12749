"""How much a server takes at once, from what is known of it."""

from typing import Any

import pytest

from apps.servers.facts import capacity
from apps.servers.models import Kind, Server


def server(kind: Kind = Kind.LLAMA_SERVER, *, facts: Any = None, **fields: Any) -> Server:
    return Server(name="s", kind=kind, stored_facts=facts or {}, **fields)


def known(**values: Any) -> dict[str, Any]:
    return {**values, "sources": dict.fromkeys(values, "told")}


def measured(**widths: int) -> dict[str, Any]:
    how = {"at": "2026-11-23T12:00:00+00:00", "how": "it was fastest", "is_settled": True}
    return {"measured_widths": {model: {"value": n, **how} for model, n in widths.items()}}


LLAMA = known(slots=4, context=4096) | {"models": [known(id="m", context=4096)]}
SWAP = {
    "models": [
        known(id="chat", slots=3, context=2048, unified=False) | {"aliases": ["c"]},
        known(id="judge"),
        known(id="big", slots=16, context=8192, unified=True),
    ],
    "concurrency_limit": [10, "llama-swap takes 10."],
}


class TestWidth:
    def test_llama_server_says_it(self) -> None:
        found = server(facts=LLAMA, parallel=2)
        assert (found.slots_of("m"), found.slots_source("m")) == (4, "told")
        assert found.slot_scope("m") == ""

    def test_a_proxy_hides_it_so_a_person_states_it(self) -> None:
        found = server(Kind.OLLA, facts={"models": [{"id": "m"}]}, parallel=6)
        assert (found.slots_of("m"), found.slots_source("m")) == (6, "set by you")

    def test_nobody_said(self) -> None:
        found = server(Kind.OPENAI)
        assert (found.slots_of(), found.slots_source()) == (1, "assumed")

    def test_a_server_that_hides_it_starts_with_four(self) -> None:
        found = server(Kind.OPENAI, facts={"models": [{"id": "m"}]})
        assert (found.slots_of("m"), found.slots_source("m")) == (4, "assumed")
        assert found.measures_slots("m")
        assert not found.measures_slots("unheard of")

    def test_a_measured_width_counts_for_its_model(self) -> None:
        facts = {"models": [{"id": "m", "aliases": ["n"]}, {"id": "o"}], **measured(m=24, o=7)}
        found = server(Kind.OPENAI, facts=facts)
        assert (found.slots_of("n"), found.slots_source("n")) == (24, "measured")
        assert (found.slots_of(""), found.slots_source()) == (7, "measured")
        assert found.measures_slots("m")

    def test_the_number_of_a_person_wins_over_a_measured_one(self) -> None:
        facts = {"models": [{"id": "m"}], **measured(m=24)}
        found = server(Kind.OPENAI, facts=facts, parallel=6)
        assert (found.slots_of("m"), found.slots_source("m")) == (6, "set by you")
        assert not found.measures_slots("m")

    def test_a_report_is_never_measured(self) -> None:
        found = server(facts=LLAMA | measured(m=24))
        assert (found.slots_of("m"), found.slots_source("m")) == (4, "told")
        assert not found.measures_slots("m")

    def test_the_slots_of_a_model_that_is_not_loaded_are_reported_later(self) -> None:
        facts = {"models": [{"id": "m", "state": "unloaded"}, {"id": "n", "state": "loaded"}]}
        found = server(Kind.LLAMA_SWAP, facts=facts)
        assert not found.measures_slots("m")
        assert found.measures_slots("n")

    @pytest.mark.parametrize(
        ("model", "width", "source"),
        [
            ("chat", 3, "told"),
            ("c", 3, "told"),
            ("judge", 1, "assumed"),
            ("big", 10, "llama-swap takes 10."),
            ("", 3, "told"),
            ("unheard of", 1, "assumed"),
        ],
    )
    def test_each_model_of_llama_swap_has_its_own(
        self, model: str, width: int, source: str
    ) -> None:
        found = server(Kind.LLAMA_SWAP, facts=SWAP)
        assert (found.slots_of(model), found.slots_source(model)) == (width, source)

    def test_who_states_more_than_the_cap_has_raised_it(self) -> None:
        found = server(Kind.LLAMA_SWAP, facts=SWAP, parallel=16)
        assert found.concurrency_limit is None
        assert found.slots_of("big") == 16


def test_scope_is_a_models_own_process() -> None:
    found = server(Kind.LLAMA_SWAP, facts=SWAP)
    assert found.swaps
    assert (found.slot_scope("c"), found.slot_scope("judge"), found.slot_scope("new")) == (
        "chat",
        "judge",
        "new",
    )
    assert not server(Kind.LITELLM, facts=SWAP).swaps


def test_loaded_models() -> None:
    models = [{"id": "a", "state": "loaded"}, {"id": "b", "state": "unloaded"}]
    models.append({"id": "c", "state": "sleeping"})
    assert server(Kind.ROUTER, facts={"models": models}).loaded_models == ["a", "c"]
    assert server(Kind.OLLA, facts={"models": models}).loaded_models == ["a", "b", "c"]


class TestContext:
    def test_by_model(self) -> None:
        found = server(Kind.ROUTER, facts=SWAP)
        assert [found.context_of(m) for m in ("chat", "big", "judge")] == [2048, 8192, None]
        assert found.context == 2048  # the smallest is safe whichever answers

    def test_stated_where_nobody_says(self) -> None:
        found = server(Kind.OLLA, facts={"models": [{"id": "m"}]}, context_stated=8192)
        assert (found.context, found.context_source("m")) == (8192, "set by you")


class TestUnified:
    """In this order: a person, the command line, what was seen, the number of slots."""

    SEEN = {"seen_unified": {"": {"value": True, "source": "seen"}}}

    def test_nothing_tells(self) -> None:
        found = server(facts=LLAMA)
        assert (found.unified(), found.unified_source()) == (None, "")
        assert found.pool("m") is None  # so each slot is taken to have its own

    def test_another_number_of_slots_than_four_was_given(self) -> None:
        found = server(facts=LLAMA | known(slots=8, unified=False))
        assert (found.unified(), found.pool("m")) == (False, None)

    def test_what_was_seen_counts_more(self) -> None:
        found = server(facts=LLAMA | known(slots=8, context=4096, unified=False) | self.SEEN)
        assert (found.unified(), found.unified_source(), found.pool()) == (True, "seen", 4096)

    def test_the_command_line_counts_more(self) -> None:
        models = [known(id="m", unified=False)]
        found = server(facts=LLAMA | {"models": models} | self.SEEN)
        assert (found.unified("m"), found.unified_source("m")) == (False, "told")

    def test_a_person_counts_most(self) -> None:
        models = [known(id="m", unified=False)]
        found = server(facts=LLAMA | {"models": models}, kv_unified=True)
        assert (found.unified("m"), found.unified_source("m")) == (True, "set by you")

    def test_a_pool_of_its_own_size(self) -> None:
        models = [known(id="m", unified=True, context=4096, pool=16384)]
        assert server(Kind.ROUTER, facts={"models": models}).pool("m") == 16384

    def test_other_programs_have_no_pool_unless_a_person_says_so(self) -> None:
        facts = {"models": [known(id="m", context=8192)]}
        found = server(Kind.OPENAI, facts=facts, parallel=64)
        assert (found.slots_of("m"), found.pool("m")) == (64, None)  # vLLM's max_model_len
        found.kv_unified = True
        assert found.pool("m") == 8192

    def test_no_context_no_pool(self) -> None:
        assert server(Kind.OLLA, facts={"models": [{"id": "m"}]}).pool("m") is None


def test_facts_of_old_are_read_too() -> None:
    found = server(facts={"slots": 4, "slots_source": "the server's /props", "models": []})
    assert (found.slots, found.slots_source()) == (4, "the server's /props")


class TestAdvice:
    def test_the_command_of_the_readme_needs_none(self) -> None:
        assert server(facts=LLAMA).advice == []

    def test_a_cache_that_was_seen_to_be_shared(self) -> None:
        [sentence] = server(facts=LLAMA | TestUnified.SEEN).advice
        assert "4 slots share one KV cache of 4,096 tokens" in sentence
        assert "Start it with -np 4" in sentence

    @pytest.mark.parametrize("stated", [True, False])
    def test_stated_cache_layout_needs_no_advice(self, stated: bool) -> None:
        assert server(facts=LLAMA, kv_unified=stated).advice == []

    def test_an_embedding_server_answers_text_by_text(self) -> None:
        models = [known(id="m", embeddings=True)]
        assert server(facts=LLAMA | {"models": models}).advice == []

    def test_unreported_slots_are_advised(self) -> None:
        found = server(Kind.OLLA, facts={"models": [{"id": "m"}], "advice": ["Olla's own."]})
        assert found.advice == ["Olla's own.", capacity.SLOTS_ADVICE]
        found.parallel = 4
        assert found.advice == ["Olla's own."]
