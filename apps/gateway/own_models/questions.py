"""Answers the questions of a request to a decision model with the labels of a text. Pure."""

from collections.abc import Mapping
from typing import Any

from apps.core.label_models.label_model import LabelScores
from apps.gateway.errors import GatewayError

MAX_LISTED = 50


def answer_questions(fields: Mapping[str, Any], scores: LabelScores) -> dict[str, Any]:
    """Return the answers to the questions of a request, each over its own options.

    Raises:
        GatewayError: a question is of another type, or has options that are no labels.
    """
    questions = fields.get("questions")
    if not isinstance(questions, dict) or not questions:
        raise GatewayError(400, "bad_questions", "`questions` is an object with a question.")
    return {name: _answer(name, question, scores) for name, question in questions.items()}


def _answer(name: str, question: Any, scores: LabelScores) -> dict[str, Any]:
    shown = name[:100]
    if not isinstance(question, dict) or question.get("type") != "choice":
        detail = f"A classifier answers questions of the type `choice` alone. “{shown}” is none."
        raise GatewayError(400, "bad_question", detail)
    options = question.get("criteria")
    if not isinstance(options, dict) or not options:
        detail = f"The question “{shown}” needs `criteria`: an object whose names are labels."
        raise GatewayError(400, "bad_question", detail)
    known = scores.probabilities
    if unknown := [option for option in options if option not in known]:
        raise _unknown_labels(shown, unknown, [*known])
    probabilities = _among(options, known)
    choice = next(label for label, _ in scores.ranked if label in options)
    answer = {"type": "choice", "choice": choice, "probabilities": probabilities}
    return {**answer, "confidence": probabilities[choice], **scores.remarks}


def _among(options: Mapping[str, Any], known: Mapping[str, float]) -> dict[str, float]:
    """Return the probability of each option, given that it is one of them."""
    total = sum(known[option] for option in options)
    return {option: known[option] / total if total > 0 else 1 / len(options) for option in options}


def _unknown_labels(question: str, unknown: list[str], known: list[str]) -> GatewayError:
    wrong, right = _listed(unknown), _listed(sorted(known))
    detail = f"The classifier does not know these labels of the question “{question}”: {wrong}. "
    return GatewayError(400, "unknown_labels", detail + f"It was trained on {right}.")


def _listed(names: list[str]) -> str:
    listed = ", ".join(f"“{name[:100]}”" for name in names[:MAX_LISTED])
    return listed + (", …" if len(names) > MAX_LISTED else "")
