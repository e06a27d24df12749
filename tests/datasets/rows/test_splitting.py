"""The fair split."""

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
