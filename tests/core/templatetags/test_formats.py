from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone


@pytest.mark.parametrize(
    ("expression", "value", "shown"),
    [
        ("x|percent", 0.9231, "92%"),
        ("x|percent:1", 0.9231, "92.3%"),
        ("x|percent", 0, "0%"),
        ("x|number", 12345.678, "12,346"),
        ("x|number:2", 0.256, "0.26"),
        ("x|duration", 0.0423, "42 ms"),
        ("x|duration", 3.21, "3.2 s"),
        ("x|duration", 95, "1 min 35 s"),
        ("x|duration", 4000, "1 h 6 min"),
        ("x|milliseconds", 1500, "1.5 s"),
        ("x|percent", None, "–"),
        ("x|points", 0.0831, "+8.3"),
        ("x|points", -0.417, "−41.7"),
        ("x|points", -0.0001, "±0"),
        ("x|points", 0, "±0"),
        ("x|duration", None, "–"),
    ],
)
def test_numbers_as_people_read_them(expression: str, value: float | None, shown: str) -> None:
    assert Template("{{ " + expression + " }}").render(Context({"x": value})) == shown


@pytest.mark.parametrize("name", ["percent", "points", "number", "duration", "milliseconds"])
def test_what_is_not_there_is_a_dash(name: str) -> None:
    assert Template("{{ run.metrics.accuracy|" + name + " }}").render(Context()) == "–"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-30, "just now"),
        (0, "just now"),
        (30, "just now"),
        (90, "1 minute ago"),
        (2 * 3600 + 1900, "2 hours ago"),
    ],
)
def test_ago_says_just_now_below_a_minute(seconds: int, shown: str) -> None:
    moment = timezone.now() - timedelta(seconds=seconds)
    text = Template("{{ moment|ago }}").render(Context({"moment": moment}))
    assert text.replace("\xa0", " ") == shown


def test_what_never_was_has_no_age() -> None:
    assert Template("{{ moment|ago }}").render(Context({"moment": None})) == ""


def test_times_say_their_moment_for_the_zone_of_the_browser() -> None:
    moment = datetime(2025, 3, 4, 23, 30, 12, 99, tzinfo=UTC)
    text = Template("{{ moment|minute }} {{ moment|day }}").render(Context({"moment": moment}))
    at = '<time datetime="2025-03-04T23:30:12+00:00" data-local='
    assert text == f'{at}"minute">4 Mar 2025, 23:30 UTC</time> {at}"day">4 Mar 2025</time>'
