import pytest

from tests.gateway.continuing.cut_answers import CutAnswer


@pytest.fixture(autouse=True)
def _answers_can_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.llm.client.RawAnswer", CutAnswer)
    CutAnswer.cuts = 0
