"""How each fact of a server is known, in the words of page and API."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.servers.facts import capacity
from apps.servers.facts.basis import Basis, basis_of, describe
from apps.servers.kinds import listing, llama_server
from apps.servers.models import Kind, Server
from apps.servers.pages.fact_rows import fact_rows


@pytest.mark.parametrize(
    ("source", "basis", "phrase"),
    [
        (llama_server.SOURCE, Basis.REPORTED, "Reported: the server's /props"),
        (listing.SOURCE, Basis.REPORTED, "Reported: the server's /v1/models"),
        (capacity.STATED, Basis.STATED, "Set by you"),
        (capacity.SETTINGS, Basis.STATED, "Set by environment variable"),
        ("the settings", Basis.STATED, "Set in the settings"),
        ("set here", Basis.STATED, "Set here"),
        (capacity.MEASURED, Basis.MEASURED, "Measured"),
        ("measured: it refused more (today)", Basis.MEASURED, "Measured: it refused more (today)"),
        ("observed: it was seen", Basis.MEASURED, "Measured: it was seen"),
        ("the server refused them", Basis.MEASURED, "Measured: the server refused them"),
        (capacity.ASSUMED, Basis.ASSUMED, "Assumed"),
        ("assumed from the slot count", Basis.ASSUMED, "Assumed from the slot count"),
        ("", Basis.ASSUMED, "Assumed"),
    ],
)
def test_basis_of_and_describe_each_source(source: str, basis: Basis, phrase: str) -> None:
    assert (basis_of(source), describe(source)) == (basis, phrase)


def server_of(kind: Kind, facts: dict[str, Any]) -> Server:
    return Server(name="s", kind=kind, stored_facts=facts)


def test_a_server_that_is_not_llama_cpp_has_no_shared_cache_to_assume() -> None:
    rows = fact_rows(server_of(Kind.OPENAI, {"models": [{"id": "m"}]}))
    assert "KV cache" not in {row.label for row in rows}


def test_every_fact_on_the_page_says_how_it_is_known() -> None:
    width = {
        "value": 9,
        "at": "2026-11-23T12:00:00+00:00",
        "how": "it was best",
        "is_settled": True,
    }
    facts = {
        "models": [{"id": "m", "context": 4096, "sources": {"context": listing.SOURCE}}],
        "refused_fields": {"m": ["min_p"]},
        "measured_widths": {"m": width},
    }
    rows = {row.label: row for row in fact_rows(server_of(Kind.OLLA, facts))}
    assert rows["Slots"].basis == "Measured"
    assert (rows["m: requests at once"].value, rows["m: requests at once"].basis) == (
        "9",
        "Measured: it was best (23 Nov 2026, 12:00)",
    )
    assert rows["m: fields not sent"].basis.startswith("Measured")
    assert rows["KV cache"].basis == "Assumed"
    assert rows["Kind"].basis == "Reported: its answers"
    assert all(row.basis for row in rows.values())


SOURCES = st.lists(
    st.text(max_size=6)
    | st.sampled_from(["measured", "observed: ", ": ", "assumed", "set ", "the settings", " now"])
).map("".join)
FIRST_WORDS = {
    Basis.REPORTED: ("Reported",),
    Basis.MEASURED: ("Measured",),
    Basis.STATED: ("Set ", "The settings"),
    Basis.ASSUMED: ("Assumed",),
}


@given(SOURCES)
def test_describe_begins_with_the_basis_for_any_source(source: str) -> None:
    assert describe(source).startswith(FIRST_WORDS[basis_of(source)])
