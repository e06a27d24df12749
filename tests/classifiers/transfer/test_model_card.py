"""The model card and the program of an export."""

import ast
from typing import Any

import pytest

from apps.classifiers.transfer.model_card import model_card
from apps.classifiers.transfer.script import snippet

MEASURED = {
    **{"rows": 1200, "accuracy": 0.9, "accuracy_low": 0.88, "accuracy_high": 0.92},
    **{"macro_f1": 0.85, "log_loss": 0.3, "ece": 0.02},
    **{"majority_label": "card", "majority_baseline": 0.4},
}


def card(**changed: Any) -> dict[str, Any]:
    return {
        "name": "Topics",
        "version": 3,
        "created": "2026-11-22T10:00:00+00:00",
        "labels": ["card", "rate"],
        "dimensions": 384,
        "temperature": 1.25,
        "embedding_model": "mini",
        "preparation": {},
        "gates": {"unsure": 0.5, "kept": 0.99, "max_logit": 2.5},
        "metrics": MEASURED,
        "trained_on": {
            **{"rows": 4800, "data_sha256": "abc", "judged_on": "rows marked as test"},
            **{"seed": 7, "versions": {"numpy": "2.0"}, "C": 10.0},
        },
    } | changed


def test_model_card_shows_scores_requirements_and_data() -> None:
    text = model_card(card())
    assert text.startswith("# Topics, version 3\n")
    assert "| accuracy | 0.9000 (0.8800 to 0.9200, 95 %) |" in text
    assert "Vectors of **mini**, 384 dimensions" in text
    assert "prefix: none" in text
    assert "4,800 rows" in text
    assert "Probability below 0.5: unsure" in text
    assert text.endswith("- card\n- rate\n")


def test_model_card_of_an_imported_classifier_shows_no_scores() -> None:
    text = model_card(card(metrics={}))
    assert "not tested here" in text
    assert "accuracy" not in text


def test_model_card_names_favoured_labels_only_where_there_are_some() -> None:
    assert "`favour`" not in model_card(card())
    assert "`favour`" in model_card(card(favour=[0.0, 1.5]))


@pytest.mark.parametrize(
    ("long_texts", "shown"),
    [("reject", "not trained on any"), ("cut", "their beginning"), ("mean", "the mean")],
)
def test_model_card_shows_the_preparation(long_texts: str, shown: str) -> None:
    text = model_card(card(preparation={"prefix": "query: ", "long_texts": long_texts}))
    assert "prefix: query: " in text
    assert shown in text


def test_snippet_is_a_program_for_the_given_server() -> None:
    program = snippet("http://127.0.0.1:8080/v1")
    tree = ast.parse(program)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == {"embed", "classify", "gate"}
    assert 'os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")' in program
    assert "allow_pickle=False" in program
