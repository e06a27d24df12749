"""The default sampling parameters in a llama-server's /props."""

from typing import Any

import pytest

from apps.servers.kinds import props


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (
            {"params": {"temperature": 0.800000011920929, "top_k": 40, "seed": 1, "min_p": "x"}},
            {"temperature": 0.8, "top_k": 40},
        ),
        ({"params": {"temperature": True, "top_p": None}}, {}),
        ({"params": [1]}, {}),
        ({}, {}),
        (None, {}),
    ],
)
def test_sampling_of_keeps_the_numbers_it_knows(settings: Any, found: dict[str, float]) -> None:
    assert props.sampling_of({"default_generation_settings": settings}) == found
