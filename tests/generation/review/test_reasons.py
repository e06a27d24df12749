"""Names of the reasons why rows are left out."""

import pytest

from apps.generation.recipe.columns import checks
from apps.generation.review.reasons import LABELS, label_of
from apps.generation.review.restore import UNREAD
from apps.generation.review.row_comparison import CODES


def test_every_reason_of_this_room_has_a_label() -> None:
    codes = {f"check_{kind}" for kind in checks.KINDS} | {*UNREAD}
    codes |= {code for pair in CODES.values() for code in pair}
    assert codes - LABELS.keys() == set()


def test_labels_differ() -> None:
    assert len(set(LABELS.values())) == len(LABELS)


@pytest.mark.parametrize(
    ("code", "label"),
    [("length", "Max tokens reached"), ("some_new_reason", "Some new reason"), ("", "")],
)
def test_an_unknown_reason_is_readable(code: str, label: str) -> None:
    assert label_of(code) == label
