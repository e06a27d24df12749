"""Calls and results as turns of the prompt, and as parts of an answer on the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils import timezone

from apps.chat.models import CallState, Message, ToolCall
from apps.chat.models.calls import CUT_OFF, NOT_RUN
from apps.chat.prompt import context

BETWEEN = "\n\n"
"""What stands in an answer's text between two rounds. The model did not write it."""


@dataclass(frozen=True)
class Part:
    """What an answer said, and what it called then."""

    text: str
    reasoning: str
    calls: Sequence[ToolCall]


def parts(content: str, reasoning: str, calls: Iterable[ToolCall]) -> list[Part]:
    """An answer's text taken apart at its calls. The last part calls nothing."""
    found: list[Part] = []
    text_from = thought_from = 0
    for _, group in groupby(calls, key=lambda call: call.round):
        called = list(group)
        first = called[0]
        text = content[text_from : first.text_to]
        thought = reasoning[thought_from : first.reasoning_to]
        found.append(Part(_own(text, text_from), _own(thought, thought_from), called))
        text_from, thought_from = first.text_to, first.reasoning_to
    text, thought = content[text_from:], reasoning[thought_from:]
    found.append(Part(_own(text, text_from), _own(thought, thought_from), ()))
    return found


def _own(piece: str, begins_at: int) -> str:
    return piece.removeprefix(BETWEEN) if begins_at else piece


def turns(answer: Message, calls: Sequence[ToolCall]) -> list[context.Turn]:
    """An answer as its model wrote it and was answered. Its own id has the last of the turns."""
    *rounds, last = parts(answer.content, answer.reasoning, calls)
    found = [turn for part in rounds for turn in of_round(part)]
    own = context.Turn(answer.pk, answer.role, last.text, last.reasoning, answer.pinned)
    return [*found, own]


def of_round(part: Part) -> list[context.Turn]:
    """The turn that called, and one for each result. Their ids are no message's."""
    called = tuple(context.Call(call.call_id, call.name, call.arguments) for call in part.calls)
    return [
        context.Turn(-part.calls[0].pk, "assistant", part.text, part.reasoning, calls=called),
        *(
            context.Turn(-call.pk, "tool", call.result or NOT_RUN, call_id=call.call_id)
            for call in part.calls
        ),
    ]


def take_along(answer: Message, longer: Message) -> dict[int, ToolCall]:
    """Gives an answer that goes on from another what that had called; the new calls by the old.

    What still waited there waits here.
    """
    calls = list(answer.tool_calls.all())
    taken = ToolCall.objects.bulk_create(
        ToolCall(**{field: getattr(call, field) for field in _KEPT}, answer=longer)
        for call in calls
    )
    end([call for call in calls if call.is_open])
    return {call.pk: new for call, new in zip(calls, taken, strict=True)}


def end(calls: Sequence[ToolCall]) -> None:
    """Says of calls that have not ended that nobody will run them any more."""
    for state, result in ((CallState.WAITING, NOT_RUN), (CallState.RUNNING, CUT_OFF)):
        ended = [call for call in calls if call.state == state]
        for call in ended:
            call.state, call.result, call.finished = CallState.STOPPED, result, timezone.now()
        if ended:
            ToolCall.objects.filter(pk__in=[call.pk for call in ended], state=state).update(
                state=CallState.STOPPED, result=result, finished=timezone.now()
            )


_KEPT = (
    *("round", "call_id", "name", "arguments", "text_to", "reasoning_to"),
    *("state", "result", "created", "finished"),
)
