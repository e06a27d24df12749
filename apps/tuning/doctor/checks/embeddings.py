"""Checks of a model that embeds. Pure."""

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks.prompts.reasons import value_of
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading

# Rounding of the formats in which vectors are sent is far below this.
NORM_TOLERANCE = 0.01
# Different texts are further apart in any model, in half precision too.
LARGEST_LIKENESS = 0.9999
# As `gguf.PoolingType` numbers them.
POOLING_TYPES = {1: "mean", 2: "cls", 3: "last", 4: "rank"}
POOLING = frozenset({"--pooling"})


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


def check_pooling_type(reading: Reading, answers: Answers) -> Finding | None:
    """Another pooling than the model was trained with, by its file, command or vectors."""
    wanted = _wanted(reading)
    named = value_of(reading.command, POOLING)
    is_same = answers.likeness is not None and answers.likeness > LARGEST_LIKENESS
    is_other = bool(wanted and named) and named not in {wanted, "none"}
    if not is_same and not is_other:
        return None
    evidence = []
    if is_same:
        evidence.append(
            "Two texts that have their first word alone in common have the same vector (cosine "
            f"similarity {answers.likeness:.5f}): it is made of the first token."
        )
    if named:
        evidence.append(f"The command has --pooling {named}.")
    if wanted:
        evidence.append(f"The model’s file says {wanted}.")
    return Finding(
        code="wrong-pooling",
        severity=Severity.FAULT,
        what="The server pools tokens in another way than the model was trained with.",
        evidence=" ".join(evidence),
        cost="All texts with the same beginning are one to a search." if is_same else NOT_MEASURED,
        measured=_likeness(answers) if is_same else None,
        advice="Start it with the model’s pooling, and compute all vectors again. Without --pooling"
        " llama-server takes what the file says.",
        flags=(f"--pooling {wanted or 'TYPE'}",),
    )


def _wanted(reading: Reading) -> str:
    """The pooling that the model's file names."""
    pooling = reading.shape.pooling if reading.shape is not None else None
    return POOLING_TYPES.get(pooling or 0, "")


def _likeness(answers: Answers) -> Amount | None:
    if answers.likeness is None:
        return None
    return Amount(value=answers.likeness, unit=Unit.NUMBER)


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
