"""Checks of a model that embeds. Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading

# Rounding of the formats in which vectors are sent is far below this.
NORM_TOLERANCE = 0.01


def check_pooling(reading: Reading, answers: Answers) -> Finding | None:
    """A vector for each token instead of one for the text, which the API cannot return."""
    if "pooling" not in answers.embedding_refused.lower():
        return None
    return Finding(
        code="no-pooling",
        severity=Severity.FAULT,
        what="The server embeds no text, because it does not pool its tokens.",
        evidence=f"It refused one short text: {answers.embedding_refused}",
        cost="Every request for embeddings fails.",
        advice="Start it with the pooling that the model was trained with; its card names it.",
        flags=("--pooling TYPE",),
    )


def check_norm(reading: Reading, answers: Answers) -> Finding | None:
    if answers.norm is None or abs(answers.norm - 1.0) <= NORM_TOLERANCE:
        return None
    return Finding(
        code="not-normalised",
        severity=Severity.FAULT,
        what="The vectors are not normalised.",
        evidence=f"The vector of a short text has a length of {answers.norm:.3f} instead of 1.",
        advice="Programs that compare vectors by their dot product get wrong orders. Start it "
        "with Euclidean normalisation, the default.",
        flags=("--embd-normalize 2",),
    )


def check_batch(reading: Reading, answers: Answers) -> Finding | None:
    """Texts that model and slot have room for do not fit into the physical batch."""
    long, longest = answers.long_text, reading.longest_text
    if long is None or long.limit is None or longest is None or long.limit >= longest:
        return None
    return Finding(
        code="small-batch",
        severity=Severity.FAULT,
        what=f"Texts of more than {long.limit:,} tokens cannot be embedded.",
        evidence=(
            f"A text of {long.tokens:,} tokens was refused: the physical batch takes "
            f"{long.limit:,}. Model and slot have room for {longest:,}."
        ),
        cost="Longer texts fail, and with them all texts of the same request.",
        advice="Make the batch as large as the longest text. That takes memory.",
        flags=(f"-b {longest}", f"-ub {longest}"),
    )
