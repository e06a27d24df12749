"""What the pump runs for each row: one request, and what becomes of the answer."""

from dataclasses import dataclass
from typing import Any, cast

from apps.batch.handlers import Context, Outcome, Verdict, Work
from apps.generation import quality, recipe
from apps.generation.problems import RecipeError
from apps.generation.recipe import Recipe, RowPrompt
from apps.llm.client import ChatRequest, Completion, Message

HANDLER = "generation"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a job's rows share. `system` is kept as it was sent, whatever later versions say."""

    recipe: Recipe
    seed: int
    system: str

    @classmethod
    def read(cls, data: dict[str, Any]) -> "Spec":
        return cls(recipe.parse(data["recipe"]), data["seed"], data["system"])

    def as_dict(self) -> dict[str, Any]:
        return {"recipe": recipe.as_dict(self.recipe), "seed": self.seed, "system": self.system}


def request_for(chosen: Recipe, row: RowPrompt, model: str) -> ChatRequest:
    """The request a row is: the same in a preview as in the job."""
    return ChatRequest(
        model=model,
        messages=[cast(Message, message) for message in row.messages],
        max_tokens=chosen.max_tokens,
        params={**chosen.sampling, "seed": row.seed},
        response_format=chosen.response_format,
    )


async def write_row(work: Work, context: Context) -> Outcome:
    """A row, by the pump's rules: `apps.batch.handlers.Handler`.

    Raises:
        LLMError: the server did not answer in full.
    """
    spec = context.once(Spec.read)
    try:
        row = recipe.render_row(spec.recipe, work.index, spec.seed)
    except RecipeError as error:
        return Outcome(Verdict.REJECTED, code="bad_prompt", reason=str(error))
    completion = await context.client.complete(request_for(spec.recipe, row, context.model))
    return outcome(spec.recipe, row, completion)


def outcome(chosen: Recipe, row: RowPrompt, completion: Completion) -> Outcome:
    """What an answer comes to. A rejected one keeps its text and its reason."""
    judgement = quality.judge(chosen.schema, completion.text, completion.finish_reason)
    return Outcome(
        Verdict.REJECTED if judgement.code else Verdict.ACCEPTED,
        output=judgement.output,
        raw=completion.text,
        code=judgement.code,
        reason=judgement.reason,
        usage=completion.usage,
        prompt=row.messages[-1]["content"],
        fingerprint=judgement.fingerprint,
    )
