"""Measurements of a sweep in a second, for tests of what is done with them."""

import pytest

from apps.tuning.sweep import plan
from apps.tuning.sweep.measuring import chat_turns, probe, rounds
from apps.tuning.sweep.measuring import sweep as sweep_module


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LENGTHS", (32, 64, 128))
    monkeypatch.setattr(chat_turns, "ROUNDS", 1)
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 1)
    monkeypatch.setattr(probe, "LEAST_SECONDS", 0.1)
    monkeypatch.setattr(probe, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(probe, "SLICE_SECONDS", 0.02)
    monkeypatch.setattr(sweep_module, "MOST_ANSWER", 16)
