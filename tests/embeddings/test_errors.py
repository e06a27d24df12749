"""Sentences of errors about texts that do not fit."""

from apps.embeddings.errors import TextsTooLarge
from apps.llm import errors


def test_one_text_has_the_sentence_of_its_problem() -> None:
    problem = errors.InputTooLarge(900, 512)
    error = TextsTooLarge({4: problem})
    assert str(error) == str(problem)
    assert error.problems == {4: problem}


def test_several_texts_are_counted_before_the_first_problem() -> None:
    problem = errors.InputTooLarge(900, 512)
    error = TextsTooLarge(dict.fromkeys(range(1200), problem))
    assert str(error).startswith("1,200 texts are too long for the embedding model. ")
    assert str(error).endswith(str(problem))
