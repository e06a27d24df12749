"""Any text as an address: refused with a sentence, or a request can be sent there."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm import errors
from apps.llm.addresses import (
    canonical_address,
    is_valid_key,
    normalised_base_url,
    validate_address,
)
from apps.llm.client import Client
from apps.llm.endpoint import Endpoint
from apps.servers.models import State
from apps.servers.probing.discovery import probe

BAD = [
    "http://256.256.256.256/v1",
    "http://a..b/v1",
    "http://[::::]/v1",
    "http://[127.0.0.1]/v1",
    "http://[/v1",
    "http://08.0.0.1:1/v1",
    "http://0177.0.0.1/v1",
    f"http://{'a' * 64}/v1",
    "http://:8080/v1",
    "http://a:99999/v1",
    "http://a:0/v1",
    "http://./v1",
    "http://\u0660/v1",
    "http://::1/v1",
    "",
    "http:///v1",
    "ftp://a",
    "http://a@b",
]
PIECES = ["http://", "https://", "[", "]", ":", "::1", ".", "..", "/", "/v1", "@", "%", "-", "_"]
PIECES += ["a" * 64, "256.1.1.1", "1", "08", "0x7f", "65536", "8080", "localhost", "\u00fc", "\n"]
addresses = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)


@pytest.fixture(scope="module", autouse=True)
def no_names_are_asked_for() -> Iterator[None]:
    """Hosts are taken apart as ever, and nobody is connected to."""
    real = socket.getaddrinfo

    def numbers_alone(host: Any, port: Any, *rest: Any, **more: Any) -> NoReturn:
        more["flags"] = socket.AI_NUMERICHOST
        real(host, port, **more)
        raise socket.gaierror(socket.EAI_NONAME, "Nothing is connected to in this test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", numbers_alone)
        yield


def failure_at(address: str, key: str = "") -> Exception:
    async def ask() -> Exception:
        client = Client(Endpoint(address, key))
        try:
            with pytest.raises(errors.LLMError) as caught:
                await client.get("/v1/models")
            return caught.value
        finally:
            await client.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize("address", BAD)
def test_bad_addresses_are_refused_with_a_sentence(address: str) -> None:
    with pytest.raises(ValueError, match=r"Enter an address such as") as caught:
        validate_address(address)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("address", BAD)
def test_a_stored_bad_address_is_an_error_of_the_server(address: str) -> None:
    assert isinstance(failure_at(normalised_base_url(address)), errors.Unreachable)


@given(addresses)
@settings(max_examples=150, deadline=None)
def test_no_text_is_more_than_an_error(address: str) -> None:
    failure_at(address)
    try:
        taken = validate_address(address)
    except ValueError:
        return
    assert not isinstance(failure_at(taken), errors.BadAddress)
    assert validate_address(taken) == taken


@given(st.text(max_size=8))
@settings(max_examples=50, deadline=None)
def test_no_key_is_more_than_an_error(key: str) -> None:
    failure = failure_at("http://127.0.0.1:1/v1", key)
    assert isinstance(failure, errors.Unreachable) == is_valid_key(key)


async def test_probe_of_a_bad_address_names_it() -> None:
    facts = await probe(Client(Endpoint("http://256.256.256.256/v1")))
    assert facts.state == State.UNREACHABLE
    assert "256.256.256.256" in facts.error


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:8399", "http://localhost:8399/v1"),
        (" 127.0.0.1:80/v1/ ", "http://127.0.0.1:80/v1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
        ("gpu.example.org/llm", "http://gpu.example.org/llm/v1"),
        ("https://a/v1", "https://a/v1"),
    ],
)
def test_an_address_without_scheme_is_http(typed: str, meant: str) -> None:
    assert validate_address(typed) == meant


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://127.0.0.1:8080/v1", "localhost:8080/"),
        ("http://gpu", "HTTP://GPU.:80/v1/"),
        ("https://gpu/a", "https://gpu:443/a/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_two_spellings_of_one_address(one: str, other: str) -> None:
    assert canonical_address(one) == canonical_address(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://gpu", "https://gpu"),
        ("http://gpu:8080", "http://gpu:8081"),
        ("http://gpu/a", "http://gpu/A"),
        ("http://127.0.0.1:8080", "http://[::1]:8080"),
        ("http://gpu", "http://gpu.lan"),
    ],
)
def test_addresses_that_may_be_two_servers(one: str, other: str) -> None:
    assert canonical_address(one) != canonical_address(other)


@given(addresses)
def test_an_address_that_is_accepted_has_one_canonical_form(address: str) -> None:
    try:
        accepted = validate_address(address)
    except ValueError:
        canonical_address(address)  # no error: rows of earlier versions may hold such a one
    else:
        assert canonical_address(canonical_address(accepted)) == canonical_address(accepted)
