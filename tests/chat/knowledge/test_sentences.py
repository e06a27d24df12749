"""The sentences of a passage that an answer refers to."""

from hypothesis import given
from hypothesis import strategies as st

from apps.chat.knowledge.sentences import mark_sentences

PASSAGE = (
    "All incoming and outgoing invoices are kept for ten\nyears from the end of the year. "
    "The head of accounting releases the deletion list in January. Version 2.5 of it is shown."
)


def marked(answer: str, number: int = 1, passage: str = PASSAGE) -> list[str]:
    return [part.text for part in mark_sentences(passage, answer, number) if part.is_marked]


def test_the_sentence_that_shares_most_words_is_marked_over_its_line_breaks() -> None:
    (sentence,) = marked("Fine. An invoice is kept for ten years. [1] The rest is deleted. [2]")
    assert sentence.startswith("All incoming")
    assert sentence.endswith("end of the year.")


def test_each_citing_sentence_marks_one() -> None:
    answer = "Invoices stay ten years [1, 3]. Accounting releases the list [1]."
    assert len(marked(answer)) == 2
    assert marked(answer, 3) == [marked(answer)[0]]


def test_a_stop_in_a_number_ends_no_sentence() -> None:
    assert marked("Version 2.5 is shown [1].") == ["Version 2.5 of it is shown."]


def test_one_shared_word_marks_nothing() -> None:
    assert marked("Ten apples [1].") == []
    assert marked("Zehn Jahre lang [1].") == []
    assert marked("Invoices are kept for ten years [2].") == []


TEXT = st.text(st.sampled_from("ab. \n#1[]-!”é"), max_size=300)


@given(TEXT, TEXT)
def test_the_parts_are_the_passage(passage: str, answer: str) -> None:
    assert "".join(part.text for part in mark_sentences(passage, answer, 1)) == passage
