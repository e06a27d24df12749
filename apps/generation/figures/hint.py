"""The most frequent reason why rows are lost, and one thing to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.batch.models import ItemStatus
from apps.generation.review.reasons import label_of

Fix = Literal["recipe", "threshold", "retry"]
MIN_ROWS = 3
OWN = "by_hand"

_SENTENCES = {
    "length": "were cut off at max tokens",
    "thinking": "spent all their tokens thinking",
    "unfinished": "stopped before the end",
    "invalid_json": "are not valid JSON",
    "schema": "do not match the schema",
    "empty": "are empty",
    "duplicate": "repeat another row",
    "near_duplicate": "are near-duplicates of another row",
    "seed_duplicate": "are near-duplicates of a seed row",
    "near_meaning": "mean nearly the same as another row",
    "seed_meaning": "mean nearly the same as a seed row",
    "contaminated": "repeat a test set text",
    "judged": "got a low score from the judge",
    "check_length": "are too short or too long",
    "check_contains": "lack a required text",
    "check_lacks": "contain forbidden text",
    "check_language": "are in the wrong language",
}
_FIXES = {
    "length": "Raise max tokens",
    "thinking": "Raise max tokens",
    "duplicate": "Add variety",
    "judged": "Change the minimum score",
    "check_length": "Change the length",
    "check_language": "Change the language check",
}
_THRESHOLD = ("near_duplicate", "seed_duplicate", "near_meaning", "seed_meaning")


@dataclass(frozen=True, slots=True)
class Hint:
    status: str
    code: str
    rows: int
    """Lost for this reason."""
    sentence: str
    fix: Fix
    label: str
    """Of the button that does it."""


def hint_of(reasons: Sequence[tuple[str, str, int]], *, can_retry: bool) -> Hint | None:
    """Name the most frequent reason; None where few rows were lost, or by hand alone.

    Args:
        reasons: status, code and number of rows, see `Progress.reasons`.
        can_retry: failed rows can be tried again.
    """
    lost = [reason for reason in reasons if reason[1] != OWN]
    if not lost or lost[0][2] < MIN_ROWS:
        return None
    status, code, rows = lost[0]
    total = sum(count for row_status, _, count in reasons if row_status == status)
    share = f"All {total:,}" if rows == total else f"{rows:,} of {total:,}"
    what = _SENTENCES.get(code)
    sentence = (
        f"{share} {status} rows {what}." if what else f"{share} {status} rows: {label_of(code)}."
    )
    if status == ItemStatus.FAILED and can_retry:
        return Hint(status, code, rows, sentence, "retry", "Retry failed rows")
    if code in _THRESHOLD:
        return Hint(status, code, rows, sentence, "threshold", "Change the threshold")
    return Hint(status, code, rows, sentence, "recipe", _FIXES.get(code, "Change the recipe"))
