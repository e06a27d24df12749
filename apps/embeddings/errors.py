"""Errors of embedding texts."""

from apps.llm import errors


class TextsTooLarge(Exception):
    """Some texts do not fit into the model; all others were embedded and cached."""

    def __init__(self, problems: dict[int, errors.LLMError]) -> None:
        first = next(iter(problems.values()))
        super().__init__(
            f"{len(problems):,} texts are too long for the embedding model. {first}"
            if len(problems) > 1
            else str(first)
        )
        self.problems = problems
        """The error of each text by its index in the call."""


class TooFewDimensions(Exception):
    """The model gives fewer dimensions than are to be kept."""


class OtherModel(errors.ServerFailed):
    """The vectors have another length than this model's, so a retry would not help."""

    transient = False
