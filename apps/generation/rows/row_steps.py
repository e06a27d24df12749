"""Steps of a row through its columns: requests in order, and the use of their answers (pure).

The same recipe, seed and index give the same first request, byte for byte. What all rows share is
the system message, which comes first, so that the server caches it. A later column continues the
row's own conversation: the server has processed it already and reads the new question alone.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.generation.recipe.columns.written import Answer, Text, Written
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.recipe import ColumnRequest, Recipe
from apps.generation.rows import answer_check, quality_check, samplers
from apps.generation.rows.samplers import RowSeed, Values, random_bits

PLAIN = "Answer with plain text this time."
# An answer with one of these errors is requested a second time. The model sees so much of it.
REPEATED_CODES = ("invalid_json", "schema")
REPEATED_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class RowRequest:
    """One request of a row."""

    shared: ColumnRequest
    """What it has in common with the requests of this column in other rows."""
    messages: tuple[dict[str, str], ...]
    seed: int
    is_repeat: bool = False
    """True for the second request of a column, whose first answer was unreadable."""

    @property
    def question(self) -> str:
        return self.messages[-1]["content"]


@dataclass(frozen=True, slots=True)
class Reply:
    """Exact output of the model."""

    text: str
    finish_reason: str
    only_thought: str = ""
    """The reason to reject a reply that is nothing but a thought."""
    is_accepted: bool = False
    """True if a person accepts it: only its shape is checked."""


@dataclass(frozen=True, slots=True)
class Row:
    """Result of a row. `code` and `reason` are empty for a good one.

    The `output` of a rejected row has the fields that are known: sampled ones, written ones, and
    the readable fields of an answer of the wrong shape.
    """

    output: Values | None = None
    code: str = ""
    reason: str = ""
    texts: tuple[str, ...] = ()
    """The free texts of the columns that are kept."""
    values: Mapping[str, Any] = field(default_factory=dict)


Steps = Generator[RowRequest, Reply, Row]


class _Rejected(Exception):
    """An answer fails a check. `fields` are those that it has."""

    def __init__(self, code: str, reason: str, fields: Values) -> None:
        super().__init__(reason)
        self.code, self.fields = code, fields


def row_steps(recipe: Recipe, row_seed: RowSeed) -> Steps:
    """Yield each request, receive its reply, and return the row."""
    values: Values = {}
    system = recipe.system_message
    messages = [{"role": "system", "content": system}] if system else []
    try:
        for column, shared in recipe.steps:
            if column.condition and not templates.evaluate(column.condition, values):
                values.update(dict.fromkeys(column.names))
            elif shared is None:
                samplers.sample_column(column, row_seed, values)
            else:
                request = _request(recipe, shared, row_seed, messages, values)
                reply = yield request
                if problem := _unreadable_reason(shared.column, reply):
                    reply = yield _repeated(request, reply, problem)
                # Later columns continue as if the good answer had been the first one.
                values.update(_answer(recipe, shared.column, reply, row_seed, values))
                messages = [*request.messages, {"role": "assistant", "content": reply.text}]
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


def _fields(recipe: Recipe, values: Values) -> Values:
    """Select the values that the row stores.

    Sampled values are stored too: a later version may sample others.
    """
    return {name: values[name] for name in recipe.field_names if name in values}


# --- Requests -----------------------------------------------------------------


def _request(
    recipe: Recipe,
    shared: ColumnRequest,
    row_seed: RowSeed,
    messages: list[dict[str, str]],
    values: Values,
) -> RowRequest:
    column, question = shared.column, _question(shared.column, values)
    is_first = shared is recipe.requests[0]
    if not is_first:
        # The system message names the fields of the first column; the last message decides.
        fields = shared.fields or (PLAIN if recipe.requests[0].fields else "")
        question = f"{question}\n\n{fields}" if fields else question
    # These keys must not change: stored jobs would sample other seeds.
    key = " request" if is_first else f" request {column.name}"
    key = f"{key} {row_seed.turn}" if row_seed.turn else key
    seed = random_bits(row_seed.seed, row_seed.index, key) % 2**31
    return RowRequest(shared, (*messages, {"role": "user", "content": question}), seed)


def _question(column: Written, values: Values) -> str:
    question = templates.render(column.prompt, values)
    if column.candidates > 1:
        return (
            f"{question}\n\nGive {column.candidates} different answers, each with the probability "
            "with which you would give it."
        )
    return question


def _unreadable_reason(column: Written, reply: Reply) -> str:
    """Return why an answer is unreadable, if a second request may help; else ""."""
    if reply.is_accepted or column.request_schema is None:
        return ""
    check = answer_check.check_answer(column.request_schema, reply.text, reply.finish_reason)
    return check.reason if check.code in REPEATED_CODES else ""


def _repeated(request: RowRequest, reply: Reply, problem: str) -> RowRequest:
    """Build the second and last request of a column, which names the problem of the answer."""
    question = f"That cannot be used. {problem}\nGive your whole answer again, as JSON alone."
    messages = (
        *request.messages,
        {"role": "assistant", "content": reply.text[:REPEATED_CHARACTERS] or "{}"},
        {"role": "user", "content": question},
    )
    return RowRequest(request.shared, messages, (request.seed + 1) % 2**31, is_repeat=True)


# --- Answers ------------------------------------------------------------------


def _answer(
    recipe: Recipe, column: Written, reply: Reply, row_seed: RowSeed, values: Values
) -> Values:
    """Return the fields of an answer that passes all checks."""
    where = f"“{column.name}”: " if recipe.is_conversation and column.name else ""
    check = answer_check.check_answer(
        column.request_schema,
        reply.text,
        reply.finish_reason,
        reply.only_thought,
        loosely=reply.is_accepted,
    )
    if check.code:
        raise _Rejected(check.code, f"{where}{check.reason}", _readable(column, check.output))
    answer = check.output
    if column.candidates > 1:
        answer = _pick_candidate(column, answer["candidates"], row_seed)
    fields = _named_fields(column, answer)
    if column.has_checks and not reply.is_accepted:
        checked = fields if isinstance(column, Text) else answer
        failed = quality_check.first_failed_check(column, checked, values)
        if failed is not None:
            raise _Rejected(failed.code, f"{where}{failed.message}", fields)
    return fields


def _readable(column: Written, answer: Any) -> Values:
    """Select the fields of a rejected answer that its column has."""
    if not isinstance(answer, dict) or column.candidates > 1:
        return {}
    if isinstance(column, Text) and "text" in answer:
        return {column.name: answer["text"]}
    return {name: answer[name] for name in column.names if name in answer}


def _named_fields(column: Written, answer: Any) -> Values:
    """Return the fields that a good answer gives the row."""
    if isinstance(column, Text):
        text = answer["text"] if isinstance(answer, dict) else answer
        return {column.name: str(text).strip()}
    if isinstance(column, Answer):
        return dict(answer)
    return {name: answer.get(name) for name in column.names}


def _pick_candidate(column: Written, candidates: list[dict[str, Any]], row_seed: RowSeed) -> Values:
    """Choose a candidate by probability; in turn if all probabilities are 0."""
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
