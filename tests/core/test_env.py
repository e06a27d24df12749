"""What the environment says, read or refused."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench import env


@pytest.mark.parametrize(("value", "read"), [("", 0.3), ("0", 0.0), ("1.5", 1.5), (" 20 ", 20.0)])
def test_seconds(value: str, read: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    assert env.seconds("WORKBENCH_X", 0.3) == read


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan", "1,5"])
def test_env_refuses_text_that_is_no_time(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_X must be a number of seconds"):
        env.seconds("WORKBENCH_X", 0.3)


def test_figures_change_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", "b = 7")
    assert env.figures("WORKBENCH_X", {"a": 1, "b": 2}) == {"a": 1, "b": 7}


@pytest.mark.parametrize("value", ["c=1", "a", "a=", "a=-1", "a=1.5", "a=x", "a=12345678901"])
def test_env_refuses_text_that_is_no_figure(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_X takes figures as in a=1"):
        env.figures("WORKBENCH_X", {"a": 1})


def test_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", "127.0.0.1, 10.0.0.0/8,::1")
    assert env.networks("WORKBENCH_X") == ["127.0.0.1", "10.0.0.0/8", "::1"]
    for wrong in ("proxy", "10.0.0.1/8", "*"):
        monkeypatch.setenv("WORKBENCH_X", wrong)
        with pytest.raises(ImproperlyConfigured, match="takes addresses and networks"):
            env.networks("WORKBENCH_X")


def test_prices_are_decimal_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", "a=0.15, b = 2")
    assert env.prices("WORKBENCH_X", ("a", "b")) == {"a": 0.15, "b": 2.0}


@pytest.mark.parametrize("value", ["c=1", "a", "a=", "a=-1", "a=1e5", "a=1,5", "a=nan"])
def test_env_refuses_text_that_is_no_price(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_X takes prices"):
        env.prices("WORKBENCH_X", ("a",))
