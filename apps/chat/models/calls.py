"""Tool calls of answers."""

import json
from collections.abc import Iterable
from typing import Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from apps.chat.streaming.events import ToolCallEvent
from apps.core.tools import title_of


class CallState(models.TextChoices):
    WAITING = "waiting", "Waiting for approval"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    """Unknown tool, wrong arguments, an error or a timeout. The result says which."""
    REFUSED = "refused", "Denied"
    EXPIRED = "expired", "No response"
    STOPPED = "stopped", "Stopped"


OPEN_CALLS = (CallState.WAITING, CallState.RUNNING)

# Results of calls that will not run, by the state they were in.
NOT_RUN = "Not run: the answer ended before you approved the call."
CUT_OFF = "The call was cut off. It may or may not have taken effect."


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(
            answer__conversation__owner_id=user.pk,
            answer__conversation__deleted_at=None,
            answer__deleted_at=None,
        )

    def unfinished(self) -> Self:
        return self.filter(state__in=OPEN_CALLS)


class ToolCall(models.Model):
    """A call of a tool by a model, and its result.

    The calls of a round were written together. The text of the answer before them ends at
    `text_to` and `reasoning_to`, in characters; a blank line, which the model did not write,
    follows there.
    """

    answer = models.ForeignKey("Message", on_delete=models.CASCADE, related_name="tool_calls")
    round = models.PositiveSmallIntegerField(help_text="1, 2, ... within its answer.")
    call_id = models.CharField(max_length=200, help_text="ID given by the model server.")
    name = models.CharField(max_length=200)
    arguments = models.TextField(
        help_text="Exactly as the model wrote them: JSON, unless it failed."
    )
    text_to = models.PositiveIntegerField(default=0)
    reasoning_to = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=CallState, default=CallState.RUNNING)
    result = models.TextField(blank=True, default="", help_text="Text that the model reads.")
    created = models.DateTimeField(default=timezone.now)
    finished = models.DateTimeField(null=True, blank=True)

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_CALLS

    @property
    def needs_result(self) -> bool:
        """True if the model has not been told how the call ended."""
        decided = {CallState.REFUSED, CallState.EXPIRED}
        return self.is_open or (self.state in decided and not self.result)

    @property
    def can_run_again(self) -> bool:
        """True if the call ended with its answer, and no text follows it."""
        answer = self.answer
        ended = answer.is_finished and answer.status not in {"complete", "failed"}
        return ended and self.state == CallState.STOPPED and len(answer.content) <= self.text_to

    @property
    def was_cut_off(self) -> bool:
        """True if it was running when its answer ended: it may have had an effect."""
        return self.result == CUT_OFF

    @property
    def title(self) -> str:
        return title_of(self.name)

    @property
    def pretty_arguments(self) -> str:
        """The arguments as indented JSON, or unchanged if they are not JSON."""
        try:
            return json.dumps(json.loads(self.arguments), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.arguments

    @property
    def shown_arguments(self) -> list[tuple[str, str]]:
        """The arguments by name, as a person reads them; [] if they are no JSON object."""
        try:
            arguments = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return []
        if not isinstance(arguments, dict):
            return []
        return [(_label(name), _value(value)) for name, value in arguments.items()]

    @property
    def seconds(self) -> float | None:
        """Seconds it took, approval included; None if it has not ended."""
        return (self.finished - self.created).total_seconds() if self.finished else None

    def as_event(self) -> ToolCallEvent:
        """Return the call as events and the API show it."""
        return ToolCallEvent(
            id=self.pk,
            answer=self.answer_id,
            call_id=self.call_id,
            round=self.round,
            name=self.name,
            arguments=self.arguments,
            at=self.text_to,
            state=str(self.state),
            result=self.result,
        )


def _label(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def stop_calls(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Give calls that will not run, or whose process died, a result that says so; return them."""
    calls = list(calls)
    for state, result in ((CallState.WAITING, NOT_RUN), (CallState.RUNNING, CUT_OFF)):
        stopped = [call for call in calls if call.state == state]
        for call in stopped:
            call.state, call.result, call.finished = CallState.STOPPED, result, timezone.now()
        if stopped:
            ToolCall.objects.filter(pk__in=[call.pk for call in stopped], state=state).update(
                state=CallState.STOPPED, result=result, finished=timezone.now()
            )
    return calls
