"""The geometry of the charts."""

import pytest

from apps.monitoring.history.measurement import Measurement
from apps.monitoring.line_charts import polylines, round_up
from apps.monitoring.views.charts import cells, charts, columns


@pytest.mark.parametrize(
    ("value", "edge"), [(0, 1), (0.7, 1), (1, 1), (1.1, 2), (3, 5), (70, 100), (1000, 1000)]
)
def test_upper_edge_is_a_round_number(value: float, edge: float) -> None:
    assert round_up(value) == pytest.approx(edge)


def test_a_gap_ends_a_line() -> None:
    assert polylines([0, 10, None, 5], 10) == ["125,100.0 375,0.0", "750,50.0 1000,50.0"]


def test_a_chart_without_measurements_has_no_line() -> None:
    found = {chart.title: chart for chart in charts([Measurement(seconds=30), None])}
    assert found["Prompt cache hits"].lines == []
    assert found["Prompt cache hits"].whole == "not reported"
    assert found["Generated tokens/s"].whole == "0"


def test_a_row_of_the_table_has_a_cell_for_each_column() -> None:
    row = dict(zip(columns(), cells(Measurement(reported=4, cached=1)), strict=True))
    assert (row["Prompt cache hits"], row["Time to first token (95%)"]) == ("25%", "not reported")
