"""Properties of the command line parser: any text is read, and what is given is found."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from apps.servers.facts.command_line import AUTO_SLOTS, SLOT_PADDING, parse, parse_preset

SLOTS = st.integers(1, 512)
CONTEXT = st.integers(1, 10_000_000)
WORDS = st.lists(st.text(max_size=20), max_size=12)


@given(st.text(max_size=200))
def test_parse_reads_any_text(command: str) -> None:
    found = parse(command)
    assert found is None or found.slots >= 1


@given(WORDS)
def test_parse_reads_any_arguments(words: list[str]) -> None:
    found = parse(words)
    assert (found is None) == (not words)
    if found is not None:
        assert found.slots >= 1
        assert found.unified or found.pool is None


@given(SLOTS, CONTEXT, st.sampled_from(["-np", "--parallel", "--n-parallel"]), st.booleans())
def test_parse_splits_the_context_between_given_slots(
    slots: int, context: int, option: str, equals: bool
) -> None:
    given_slots = [f"{option}={slots}"] if equals else [option, str(slots)]
    found = parse(["llama-server", *given_slots, "-c", str(context)])
    assert found is not None
    assert (found.slots, found.unified, found.pool) == (slots, False, None)
    assert found.context is not None
    assert found.context % SLOT_PADDING == 0
    assert context <= slots * found.context < context + slots * (SLOT_PADDING + 1)


@given(CONTEXT)
def test_parse_without_slots_takes_one_shared_cache(context: int) -> None:
    found = parse(["llama-server", "-c", str(context)])
    assert found is not None
    assert (found.slots, found.unified) == (AUTO_SLOTS, True)
    assert (found.context, found.pool) == (context, context)


@given(WORDS, SLOTS)
def test_parse_is_the_same_for_a_command_and_its_words(words: list[str], slots: int) -> None:
    plain = [word for word in words if word and not set(word) - set("abcxyz-=./0123456789")]
    command = ["llama-server", *plain, "-np", str(slots)]
    assert parse(shlex.join(command)) == parse(command)


@given(st.text(max_size=100), SLOTS)
def test_parse_preset_finds_the_slots_in_any_preset(text: str, slots: int) -> None:
    assert parse_preset(f"parallel = {slots}\n{text}") == slots
    found = parse_preset(text)
    assert found is None or found > 0
