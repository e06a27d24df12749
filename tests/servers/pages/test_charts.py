"""What the charts of a server's card say."""

import json

from apps.llm.permits import UsageBucket
from apps.servers.pages.charts import charts, series

QUIET = [UsageBucket(start=10 * place) for place in range(90)]
ASKED = [
    *QUIET[:-1],
    UsageBucket(start=890, requests=1, prompt=600, cached=540, completion=120, reported=600),
]


def test_four_charts_with_their_numbers() -> None:
    said = {chart.title: (chart.now, chart.peak) for chart in charts(ASKED, embeds=False)}
    assert said == {
        "Prompt tokens/s": ("10", "peak 60"),
        "Generated tokens/s": ("2", "peak 12"),
        "Requests that waited": ("none", "in 15 minutes"),
        "Prompt cache hits": ("90%", "90% over 15 min"),
    }


def test_what_only_embeds_writes_and_caches_nothing() -> None:
    assert [chart.name for chart in charts(ASKED, embeds=True)] == ["prompt", "waited"]


def test_no_chart_where_nothing_was_asked() -> None:
    assert charts(QUIET, embeds=False) == []
    waits = [*QUIET[:-1], UsageBucket(start=890, waited=1)]
    assert len(charts(waits, embeds=False)) == 4


def test_a_share_of_nothing_is_no_number() -> None:
    assert json.loads(series(ASKED))["cached"][-2:] == [None, 0.9]


def test_what_the_server_does_not_tell_is_not_zero() -> None:
    silent = [*QUIET[:-1], UsageBucket(start=890, requests=1, prompt=600, completion=120)]
    chart = next(chart for chart in charts(silent, embeds=False) if chart.name == "cached")
    assert (chart.now, chart.peak) == ("not reported", "")
    assert json.loads(series(silent))["cached"][-1] is None
