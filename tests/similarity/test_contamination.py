"""Texts that repeat a test set, in scripts with and without spaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.similarity.contamination import TestTextIndex
from apps.similarity.words import split_unspaced_letters, split_words

TESTS = TestTextIndex(
    [
        "My card was charged twice for the same coffee this morning, please help.",
        "Where is my refund?",
        "Thank you!",
        "我的信用卡今天早上被同一家咖啡店重复扣款了两次请帮帮我",
        "ฉันถูกเรียกเก็บเงินสองครั้งสำหรับกาแฟแก้วเดียวกันเมื่อเช้านี้",
        "退款在哪里呢",
        "谢谢你",
    ]
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Hello! my card was charged twice for the same coffee, why?",
            "“my card was charged twice",
        ),
        ("where is my  REFUND?", "row 2 of the test set"),
        (
            "Hello, where is my refund? I wait since May.",
            "Shares “where is my refund” with row 2",
        ),
        ("Hello, thank you for the refund.", ""),
        ("My card was charged twice.", ""),
        ("你好!我的信用卡今天早上被同一家咖啡店重复扣款了,怎么办?", "row 4 of the test set"),
        ("สวัสดี ฉันถูกเรียกเก็บเงินสองครั้งสำหรับกาแฟ ทำอย่างไร", "row 5 of the test set"),
        ("请问,退款在哪里呢?我等了很久", "Shares “退款在哪里呢” with row 6"),
        ("谢谢你,我的信用卡今天很好用", ""),
        ("Where can I find my refund slip for the shoes?", ""),
        ("", ""),
    ],
)
def test_describe_overlap_finds_the_test_text(text: str, sentence: str) -> None:
    overlap = TESTS.describe_overlap(text)
    assert sentence in overlap
    assert bool(overlap) == bool(sentence)


def test_an_index_without_texts_finds_nothing() -> None:
    assert TestTextIndex([]).describe_overlap("Where is my refund?") == ""


@given(st.text(max_size=80))
def test_describe_overlap_takes_any_text(text: str) -> None:
    assert TESTS.describe_overlap(text) == "" or "of the test set" in TESTS.describe_overlap(text)


@given(st.text("abcdefgh ", min_size=20, max_size=80).filter(lambda t: len(t.split()) >= 4))
def test_a_test_text_repeats_itself_however_it_is_written(text: str) -> None:
    index = TestTextIndex([text])
    assert index.describe_overlap(f"  {text.upper()} ")
    assert index.describe_overlap(f"hello {text} bye")


def test_split_words_reads_the_normalised_text() -> None:
    assert split_words("Don't  PANIC, ﬁne!") == ["don", "t", "panic", "fine"]
    assert split_unspaced_letters("退款 ok ทาง") == ["退", "款", "ท", "า", "ง"]
