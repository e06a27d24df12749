"""Steps of a row through its columns: requests in order, and the use of their answers (pure).

The same recipe, seed and index give the same first request, byte for byte. What every row shares is
the system message, which comes first, so that the server reads it once. A later column goes on in
the row's own conversation: all that was said before is in the server's cache already, and only the
new question is read.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.generation.recipe.columns import schemas
from apps.generation.recipe.columns.written import Answer, Text, Written
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import Recipe, fields_in_words
from apps.generation.rows import answer_check, samplers
from apps.generation.rows.samplers import RowSeed, Values, random_bits

PLAIN = "Answer with plain text this time."
# What is wrong with an answer that is asked for a second time, and so much of it is shown.
SAID_AGAIN = ("invalid_json", "schema")
SAID_AGAIN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a row."""

    column: Written
    messages: tuple[dict[str, str], ...]
    seed: int
    again: bool = False
    """The second question about an answer that could not be read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Exact output of the model."""

    text: str
    finish_reason: str
    only_thought: str = ""
    """Of an answer that is nothing but a thought: the sentence that says so."""
    passed: bool = False
    """A person lets it pass: it only has to be of the right shape."""


@dataclass(frozen=True, slots=True)
class Row:
    """Result of a row. `code` and `reason` are empty when it is good.

    `output` of one that is not good has the fields there are so far: the drawn ones, what was
    written, and of an answer of the wrong shape what could be read.
    """

    output: dict[str, Any] | None = None
    code: str = ""
    reason: str = ""
    texts: tuple[str, ...] = ()
    """What the model was free to write, of the columns that are kept."""
    values: Mapping[str, Any] = field(default_factory=dict)


Steps = Generator[Ask, Reply, Row]


class _Rejected(Exception):
    """`fields` are those of the answer, as far as it has any."""

    def __init__(self, code: str, reason: str, fields: Mapping[str, Any]) -> None:
        super().__init__(reason)
        self.code, self.fields = code, fields


def write(recipe: Recipe, row_seed: RowSeed) -> Steps:
    """Yields what to ask, is sent the answer, and returns the row."""
    values: Values = {}
    messages = _beginning(recipe)
    try:
        for column in recipe.columns:
            if column.condition and not templates.evaluate(column.condition, values):
                values.update(dict.fromkeys(column.names))
            elif isinstance(column, Written):
                ask = _ask(recipe, column, row_seed, messages, values)
                reply = yield ask
                if fault := _fault(column, reply):
                    reply = yield _repeat_request(ask, reply, fault)
                # Later columns are asked as if the good answer had been the first one.
                values.update(_answer(recipe, column, reply, row_seed, values))
                messages = [*ask.messages, {"role": "assistant", "content": reply.text}]
            else:
                samplers.sample_column(column, row_seed, values)
    except RecipeError as error:
        return Row(_fields(recipe, values) or None, "bad_prompt", str(error), values=values)
    except _Rejected as rejected:
        values.update(rejected.fields)
        fields = _fields(recipe, values) or None
        return Row(fields, rejected.code, str(rejected), values=values)
    output = _fields(recipe, values)
    if not recipe.is_plain:
        output = {name: values.get(name) for name in recipe.field_names}
    return Row(output, texts=tuple(answer_check.free_texts_of(recipe, output)), values=values)


def _fields(recipe: Recipe, values: Values) -> dict[str, Any]:
    """Select the values that the row stores, sampled ones included: sampled again later they might
    differ."""
    return {name: values[name] for name in recipe.field_names if name in values}


def rebuild_row(recipe: Recipe, row_seed: RowSeed, replies: Sequence[str]) -> tuple[Row, int]:
    """The row that a person lets pass, and how many of its replies can be used.

    It is complete if its `code` is empty; else columns are left to be written.
    """
    steps = write(recipe, row_seed)
    known = [*(Reply(text, "stop", passed=True) for text in replies), Reply("", "unfinished")]
    sent = 0
    try:
        next(steps)
        while True:
            sent += 1
            steps.send(known[sent - 1])
    except StopIteration as end:
        row: Row = end.value
        return row, max(0, sent - bool(row.code))


def first_ask(recipe: Recipe, row_seed: RowSeed) -> Ask:
    """The row's first request.

    Raises:
        RecipeError: it cannot be put together.
    """
    steps = write(recipe, row_seed)
    try:
        return next(steps)
    except StopIteration as end:
        row: Row = end.value
        raise RecipeError.one(
            row.reason or "This recipe has no column written by the model."
        ) from None
    finally:
        steps.close()


def _beginning(recipe: Recipe) -> list[dict[str, str]]:
    system = recipe.system_message
    return [{"role": "system", "content": system}] if system else []


def _ask(
    recipe: Recipe,
    column: Written,
    row_seed: RowSeed,
    messages: list[dict[str, str]],
    values: Values,
) -> Ask:
    question = _question(column, values)
    if column is not recipe.written[0]:
        # The system message may speak of the first column's fields: the last word decides.
        fields = fields_in_words(column) or (PLAIN if recipe.written[0].request_schema else "")
        question = f"{question}\n\n{fields}" if fields else question
    asked = (*messages, {"role": "user", "content": question})
    # The first column's seed has always been drawn like this: the same rows as ever.
    what = " request" if column is recipe.written[0] else f" request {column.name}"
    what = f"{what} {row_seed.turn}" if row_seed.turn else what
    return Ask(column, asked, random_bits(row_seed.seed, row_seed.index, what) % 2**31)


def _fault(column: Written, reply: Reply) -> str:
    """Return why an answer is unreadable, if a second question may help; else ""."""
    if reply.passed or column.request_schema is None:
        return ""
    judgement = answer_check.check_answer(column.request_schema, reply.text, reply.finish_reason)
    return judgement.reason if judgement.code in SAID_AGAIN else ""


def _repeat_request(ask: Ask, reply: Reply, fault: str) -> Ask:
    """Asks once more, and says what was wrong. Once only: a second mistake ends the row."""
    question = f"That cannot be used. {fault}\nGive your whole answer again, as JSON alone."
    messages = (
        *ask.messages,
        {"role": "assistant", "content": reply.text[:SAID_AGAIN_CHARACTERS] or "{}"},
        {"role": "user", "content": question},
    )
    return Ask(ask.column, messages, (ask.seed + 1) % 2**31, again=True)


def _question(column: Written, values: Values) -> str:
    question = templates.render(column.prompt, values)
    if column.candidates > 1:
        return (
            f"{question}\n\nGive {column.candidates} different answers, each with the probability "
            "with which you would give it."
        )
    return question


def _answer(
    recipe: Recipe, column: Written, reply: Reply, row_seed: RowSeed, values: Values
) -> dict[str, Any]:
    """The fields an answer comes to, checked."""
    where = f"“{column.name}”: " if recipe.is_conversation and column.name else ""
    judgement = answer_check.check_answer(
        column.request_schema,
        reply.text,
        reply.finish_reason,
        reply.only_thought,
        loosely=reply.passed,
    )
    answer = judgement.output
    if judgement.code:
        fields = answer if isinstance(answer, dict) and column.candidates == 1 else {}
        found = {name: fields[name] for name in column.names if name in fields}
        if isinstance(column, Text) and "text" in fields:
            found = {column.name: fields["text"]}
        raise _Rejected(judgement.code, f"{where}{judgement.reason}", found)
    if column.candidates > 1:
        answer = _drawn(column, answer["candidates"], row_seed)
    if isinstance(column, Text):
        text = answer["text"] if isinstance(answer, dict) else answer
        answer = {column.name: str(text).strip()}
    fields = dict(answer)
    if not isinstance(column, Answer | Text):
        fields = {name: answer.get(name) for name in schemas.field_names(column.answer_schema)}
    problem = None if reply.passed else answer_check.first_failed_check(column, answer, values)
    if problem is not None:
        raise _Rejected(problem.code, f"{where}{problem.message}", fields)
    return fields


def _drawn(column: Written, candidates: list[dict[str, Any]], row_seed: RowSeed) -> Any:
    """Choose a candidate by probability; in turn if no probabilities are known."""
    weights = [max(0.0, float(candidate["probability"])) for candidate in candidates]
    total = sum(weights)
    at = row_seed.random_bits(f"{column.name} candidate") / 2.0**64 * (total or len(candidates))
    answer = candidates[-1]["answer"]
    for candidate, weight in zip(candidates, weights, strict=True):
        at -= weight if total else 1
        if at < 0:
            answer = candidate["answer"]
            break
    return answer if isinstance(answer, dict) else {"text": answer}
