"""The fair split."""

from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.rows.splitting import hold_out


def test_a_split_takes_its_share_of_each_label() -> None:
    labels = ["a"] * 50 + ["b"] * 10 + ["c"] * 2 + ["d"]
    test = hold_out(labels, list(range(63)), share=0.2, seed=0)
    taken = [sum(t for t, name in zip(test, labels, strict=True) if name == x) for x in "abcd"]
    assert taken == [10, 2, 1, 0]
    assert (hold_out(labels, list(range(63)), share=0.2, seed=0) == test).all()
    assert (hold_out(labels, list(range(63)), share=0.2, seed=1) != test).any()


def test_a_split_keeps_groups_whole() -> None:
    keys = [n % 7 for n in range(70)]
    test = hold_out(["a"] * 70, keys, share=0.3, seed=0)
    assert {key for key, t in zip(keys, test, strict=True) if t}.isdisjoint(
        key for key, t in zip(keys, test, strict=True) if not t
    )


def test_a_split_of_nothing() -> None:
    assert hold_out([], [], share=0.2, seed=0).tolist() == []


ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=60)


@given(ROWS, st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
def test_hold_out_keeps_a_text_on_one_side_and_a_label_in_training(
    rows: list[tuple[str, int]], share: float, seed: int
) -> None:
    labels, keys = [label for label, _ in rows], [key for _, key in rows]
    test = hold_out(labels, keys, share=share, seed=seed)
    assert test.shape == (len(rows),)
    held = {key for key, is_test in zip(keys, test, strict=True) if is_test}
    kept = {key for key, is_test in zip(keys, test, strict=True) if not is_test}
    assert not held & kept
    first = dict(zip(reversed(keys), reversed(labels), strict=True))  # a text counts for its first
    for label in set(first.values()):
        texts = {key for key, of in first.items() if of == label}
        assert texts & kept
        assert bool(texts & held) == (len(texts) > 1)


@given(ROWS, st.integers(0, 100))
def test_hold_out_draws_the_same_rows_for_the_same_seed(
    rows: list[tuple[str, int]], seed: int
) -> None:
    labels, keys = [label for label, _ in rows], [key for _, key in rows]
    one = hold_out(labels, keys, share=0.3, seed=seed)
    assert one.tolist() == hold_out(labels, keys, share=0.3, seed=seed).tolist()
