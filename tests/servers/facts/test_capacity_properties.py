"""Properties of capacity: it never exceeds a report or a limit, and facts survive their JSON."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apps.servers.facts.server_facts import ModelFacts, Observation, ServerFacts
from apps.servers.models import Kind, Server

COUNT = st.none() | st.integers(1, 1000)
FLAG = st.none() | st.booleans()
MODELS = st.lists(
    st.builds(
        ModelFacts,
        id=st.sampled_from(["a", "b", "c"]),
        aliases=st.lists(st.sampled_from(["x", "y"]), max_size=2),
        state=st.sampled_from(["loaded", "unloaded", "sleeping", "unknown"]),
        slots=COUNT,
        context=COUNT,
        pool=COUNT,
        unified=FLAG,
    ),
    max_size=3,
    unique_by=lambda model: model.id,
)
FACTS = st.builds(
    ServerFacts,
    models=MODELS,
    slots=COUNT,
    context=COUNT,
    unified=FLAG,
    models_at_once=COUNT,
    concurrency_limit=st.none() | st.tuples(st.integers(1, 20), st.just("limited")),
    observed_unified=st.dictionaries(
        st.sampled_from(["", "a"]), st.builds(Observation, st.booleans(), st.just("observed"))
    ),
    refused_fields=st.dictionaries(st.sampled_from(["a", "b"]), st.just(["min_p"])),
)
SERVERS = st.builds(
    lambda facts, **fields: Server(stored_facts=facts.to_json(), **fields),
    facts=FACTS,
    kind=st.sampled_from(list(Kind)),
    parallel=COUNT,
    context_stated=COUNT,
    kv_unified=FLAG,
)
NAMES = st.sampled_from(["", "a", "b", "x", "unknown"])


@given(FACTS)
def test_facts_survive_their_json(facts: ServerFacts) -> None:
    stored: dict[str, Any] = json.loads(json.dumps(facts.to_json()))
    assert ServerFacts.from_json(stored) == facts


@given(st.dictionaries(st.text(max_size=10), st.none() | st.integers() | st.text(max_size=10)))
def test_facts_ignore_unknown_keys(stored: dict[str, Any]) -> None:
    unknown = {f"unknown {key}": value for key, value in stored.items()}
    assert ServerFacts.from_json(unknown) == ServerFacts()


@given(SERVERS, NAMES)
def test_slots_are_at_least_one_and_within_the_limit(server: Server, name: str) -> None:
    slots = server.slots_of(name)
    assert slots >= 1
    if limit := server.concurrency_limit:
        assert slots <= limit[0]
        assert (server.parallel or 0) <= limit[0]


@given(SERVERS, NAMES)
def test_the_slots_of_a_server_hold_for_each_of_its_models(server: Server, name: str) -> None:
    """Without a name the smallest counts, which is safe whichever model answers."""
    if name in server.model_ids and server.facts_of(name).slots:
        assert server.slots_of() <= server.slots_of(name)


@given(SERVERS, NAMES)
def test_a_stated_cache_counts_before_all_reports(server: Server, name: str) -> None:
    if server.kv_unified is not None:
        assert server.unified(name) == server.kv_unified
    if not server.unified(name):
        assert server.pool(name) is None


@given(SERVERS, NAMES)
def test_the_slot_scope_is_a_model_only_where_models_swap(server: Server, name: str) -> None:
    scope = server.slot_scope(name)
    assert scope == "" if not server.swaps else scope == server.model_id(name)
