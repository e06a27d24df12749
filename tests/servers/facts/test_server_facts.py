"""Facts of servers and models: learned once, remembered, stored as JSON and read again."""

from hypothesis import given
from hypothesis import strategies as st

from apps.servers.facts.server_facts import REMEMBERED, ModelFacts, Observation, ServerFacts
from apps.servers.facts.slot_status import SlotStatus


def test_the_first_report_of_a_fact_counts() -> None:
    model = ModelFacts("m")
    model.learn("the command line", slots=4, context=None)
    model.learn("the server's /props", slots=8, context=4096)
    assert (model.slots, model.context) == (4, 4096)
    assert model.sources == {"slots": "the command line", "context": "the server's /props"}


def test_false_is_a_report_and_nothing_is_none() -> None:
    model = ModelFacts("m")
    model.learn("a", vision=False, abilities={}, weights=[])
    model.learn("b", vision=True, abilities={"tools": True}, weights=[7])
    assert model.vision is False
    assert model.sources == {"vision": "a", "abilities": "b", "weights": "b"}


def test_lasting_facts_are_remembered_while_a_model_is_not_loaded() -> None:
    earlier = ModelFacts("m", state="loaded", ttl=60)
    earlier.learn("the model's /props", slots=4)
    model = ModelFacts("m", state="unloaded")
    model.remember(earlier)
    assert (model.slots, model.ttl) == (4, None)
    assert model.sources == {"slots": "the model's /props" + REMEMBERED}


def test_the_note_of_a_memory_is_written_once_and_goes_when_loaded() -> None:
    first = ModelFacts("m", state="unloaded")
    first.learn("the model's /props" + REMEMBERED, slots=4)
    second = ModelFacts("m", state="unloaded")
    second.remember(first)
    assert second.sources["slots"] == "the model's /props" + REMEMBERED
    loaded = ModelFacts("m", state="sleeping")
    loaded.remember(second)
    assert loaded.sources["slots"] == "the model's /props"


def test_a_model_is_found_by_id_alias_or_as_the_first() -> None:
    facts = ServerFacts(models=[ModelFacts("a"), ModelFacts("b", aliases=["bee"])])
    found = [facts.model(), facts.model("b"), facts.model("bee"), facts.model("c")]
    assert [model and model.id for model in found] == ["a", "b", "b", None]
    assert ServerFacts().model() is None


def test_facts_of_an_earlier_version_are_read() -> None:
    facts = ServerFacts.from_json(
        {"slots": 4, "slots_source": "stated", "unknown_field": 1, "width_cap": [10, "a limit"]}
    )
    assert facts.sources == {"slots": "stated"}
    assert facts.concurrency_limit == (10, "a limit")


names = st.text(max_size=8)
models = st.builds(
    ModelFacts,
    id=names,
    aliases=st.lists(names, max_size=3),
    slots=st.none() | st.integers(1, 64),
    unified=st.none() | st.booleans(),
    abilities=st.dictionaries(names, st.booleans(), max_size=3),
    sources=st.dictionaries(names, names, max_size=3),
)
server_facts = st.builds(
    ServerFacts,
    models=st.lists(models, max_size=3),
    context=st.none() | st.integers(1, 2**20),
    concurrency_limit=st.none() | st.tuples(st.integers(1, 99), names),
    observed_unified=st.dictionaries(
        names, st.builds(Observation, value=st.booleans(), source=names), max_size=3
    ),
    refused_fields=st.dictionaries(names, st.lists(names, max_size=3), max_size=3),
)


@given(server_facts)
def test_stored_facts_are_read_as_they_were(facts: ServerFacts) -> None:
    assert ServerFacts.from_json(facts.to_json()) == facts


def test_a_slot_of_a_new_server_and_of_one_that_reports_little() -> None:
    entry = {
        **{"id": 3, "is_processing": True, "id_task": 9, "n_ctx": 4096},
        **{"n_prompt_tokens": 120, "n_prompt_tokens_cache": 100},
        "next_token": [{"n_decoded": 20, "n_remain": -1}],
    }
    slot = SlotStatus.parse(entry, index=0, model="m")
    assert (slot.id, slot.busy, slot.prompt_tokens, slot.remain) == (3, True, 100, -1)
    assert SlotStatus.from_json(slot.to_json()) == slot
    bare = SlotStatus.parse({"next_token": []}, index=5, model="")
    assert (bare.id, bare.busy, bare.held, bare.prompt_tokens) == (5, False, None, None)
