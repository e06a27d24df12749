"""Stored secrets: readable with the site's key alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from apps.core import crypto


@given(st.text())
def test_decrypt_returns_what_was_encrypted(plain: str) -> None:
    plain = plain.encode("utf-8", "ignore").decode()
    assert crypto.decrypt(crypto.encrypt(plain)) == plain


def test_an_empty_secret_stays_empty() -> None:
    assert crypto.encrypt("") == ""
    assert crypto.decrypt("") == ""


def test_the_stored_text_does_not_show_the_secret() -> None:
    assert "sk-abc" not in crypto.encrypt("sk-abc")


def test_the_same_secret_is_stored_in_another_way_each_time() -> None:
    assert crypto.encrypt("sk-abc") != crypto.encrypt("sk-abc")


def test_another_site_key_cannot_read_it(settings: Settings) -> None:
    cipher = crypto.encrypt("sk-abc")
    settings.SECRET_KEY = "another"
    with pytest.raises(crypto.SecretLost, match="Enter the key again"):
        crypto.decrypt(cipher)


@pytest.mark.parametrize("cipher", ["junk", "gAAAAA", "é"])
def test_junk_is_reported_as_lost(cipher: str) -> None:
    with pytest.raises(crypto.SecretLost):
        crypto.decrypt(cipher)
