"""What the environment says, read or refused."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench import env


@pytest.mark.parametrize(("value", "read"), [("", 0.3), ("0", 0.0), ("1.5", 1.5), (" 20 ", 20.0)])
def test_seconds(value: str, read: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    assert env.seconds("WORKBENCH_X", 0.3) == read


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan", "1,5"])
def test_what_is_no_time_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_X", value)
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_X must be a number of seconds"):
        env.seconds("WORKBENCH_X", 0.3)
