"""One row from its columns: what is asked when, and what becomes of the answers (pure).

The same recipe, seed and index give the same first request, byte for byte. What every row shares is
the system message, which comes first, so that the server reads it once. A later column goes on in
the row's own conversation: all that was said before is in the server's cache already, and only the
new question is read.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.generation import draws, prompts, quality, schemas
from apps.generation.columns import Answer, Text, Written
from apps.generation.draws import Draw, Values, number
from apps.generation.plan import Recipe, fields_in_words
from apps.generation.problems import RecipeError

PLAIN = "Answer with plain text this time."


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a row."""

    column: Written
    messages: tuple[dict[str, str], ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote, to the letter."""

    text: str
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a row. `code` and `reason` are empty when it is good."""

    output: dict[str, Any] | None = None
    code: str = ""
    reason: str = ""
    texts: tuple[str, ...] = ()
    """What the model was free to write, of the columns that are kept."""
    values: Mapping[str, Any] = field(default_factory=dict)


Steps = Generator[Ask, Reply, Row]


class _Rejected(Exception):
    def __init__(self, code: str, reason: str, output: Any = None) -> None:
        super().__init__(reason)
        self.code, self.output = code, output


def write(recipe: Recipe, draw: Draw) -> Steps:
    """Yields what to ask, is sent the answer, and returns the row."""
    values: Values = {}
    messages = _beginning(recipe)
    output: Any = None
    try:
        for column in recipe.columns:
            if column.condition and not prompts.evaluate(column.condition, values):
                values.update(dict.fromkeys(column.names))
            elif isinstance(column, Written):
                ask = _ask(recipe, column, draw, messages, values)
                reply = yield ask
                answer = _answer(recipe, column, reply, draw, values)
                values.update(answer)
                output = answer
                messages = [*ask.messages, {"role": "assistant", "content": reply.text}]
            else:
                draws.fill(column, draw, values)
    except RecipeError as error:
        return Row(None, "bad_prompt", str(error), values=values)
    except _Rejected as rejected:
        return Row(rejected.output, rejected.code, str(rejected), values=values)
    # Drawn values are kept with the row: worked out again later they might be another row's.
    output = {
        name: values.get(name)
        for name in recipe.field_names
        if name in values or not recipe.is_plain
    }
    return Row(output, texts=tuple(quality.texts_of(recipe, output)), values=values)


def first_ask(recipe: Recipe, draw: Draw) -> Ask:
    """The row's first request.

    Raises:
        RecipeError: it cannot be put together.
    """
    steps = write(recipe, draw)
    try:
        return next(steps)
    except StopIteration as end:
        row: Row = end.value
        raise RecipeError.of(row.reason or "This row asks the model nothing.") from None
    finally:
        steps.close()


def _beginning(recipe: Recipe) -> list[dict[str, str]]:
    system = recipe.system_message
    return [{"role": "system", "content": system}] if system else []


def _ask(
    recipe: Recipe, column: Written, draw: Draw, messages: list[dict[str, str]], values: Values
) -> Ask:
    question = _question(column, values)
    if column is not recipe.written[0]:
        # The system message may speak of the first column's fields: the last word decides.
        fields = fields_in_words(column) or (PLAIN if recipe.written[0].asked_schema else "")
        question = f"{question}\n\n{fields}" if fields else question
    asked = (*messages, {"role": "user", "content": question})
    # The first column's seed has always been drawn like this: the same rows as ever.
    what = " request" if column is recipe.written[0] else f" request {column.name}"
    return Ask(column, asked, number(draw.seed, draw.index, what) % 2**31)


def _question(column: Written, values: Values) -> str:
    question = prompts.render(column.prompt, values)
    if column.candidates > 1:
        return (
            f"{question}\n\nGive {column.candidates} different answers, each with the probability "
            "with which you would give it."
        )
    return question


def _answer(
    recipe: Recipe, column: Written, reply: Reply, draw: Draw, values: Values
) -> dict[str, Any]:
    """The fields an answer comes to, checked."""
    where = f"“{column.name}”: " if recipe.is_conversation and column.name else ""
    judgement = quality.judge(column.asked_schema, reply.text, reply.finish_reason)
    if judgement.code:
        raise _Rejected(judgement.code, f"{where}{judgement.reason}", judgement.output)
    answer = judgement.output
    if column.candidates > 1:
        answer = _drawn(column, answer["candidates"], draw)
    if isinstance(column, Text):
        text = answer["text"] if isinstance(answer, dict) else answer
        answer = {column.name: str(text).strip()}
    problem = quality.first_problem(column, answer, values)
    if problem is not None:
        raise _Rejected(problem.code, f"{where}{problem.message}", answer)
    if isinstance(column, Answer | Text):
        fields: dict[str, Any] = answer
        return fields
    return {name: answer.get(name) for name in schemas.field_names(column.schema)}


def _drawn(column: Written, candidates: list[dict[str, Any]], draw: Draw) -> Any:
    """One of the candidates, by their probabilities; by turns where those say nothing."""
    weights = [max(0.0, float(candidate["probability"])) for candidate in candidates]
    total = sum(weights)
    at = draw.number(f"{column.name} candidate") / 2.0**64 * (total or len(candidates))
    answer = candidates[-1]["answer"]
    for candidate, weight in zip(candidates, weights, strict=True):
        at -= weight if total else 1
        if at < 0:
            answer = candidate["answer"]
            break
    return answer if isinstance(answer, dict) else {"text": answer}
