"""The tree of errors."""

from apps.llm import errors


def kinds(root: type[errors.LLMError] = errors.LLMError) -> list[type[errors.LLMError]]:
    """Those of the room: another's, which exist where it was imported, share the code of a kind."""
    ours = [kind for kind in root.__subclasses__() if kind.__module__ == errors.__name__]
    return [found for kind in ours for found in [kind, *kinds(kind)]]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    for kind in kinds():
        line = next(line for line in drawn.splitlines() if f" {kind.__name__} " in line)
        assert line.rstrip().endswith("transient") == kind.transient, kind


def test_no_two_errors_share_a_code() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(set(codes)) == len(codes)
