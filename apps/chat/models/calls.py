"""What models called while they answered."""

import json
from typing import Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from apps.core.tools import title_of


class CallState(models.TextChoices):
    WAITING = "waiting", "Waiting for approval"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    """Unknown, wrong arguments, an error, or too slow: the result says what."""
    REFUSED = "refused", "Denied"
    EXPIRED = "expired", "No response"
    STOPPED = "stopped", "Stopped"


OPEN_CALLS = (CallState.WAITING, CallState.RUNNING)

# The results of calls that nobody will run any more, by the state they were in.
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
    """What a model called while it answered, and what it was told.

    The calls of a round were written together. What the answer said before them ends at `text_to`
    and `reasoning_to`, in characters; a blank line, which the model did not write, follows there.
    """

    answer = models.ForeignKey("Message", on_delete=models.CASCADE, related_name="tool_calls")
    round = models.PositiveSmallIntegerField(help_text="1, 2, ... within its answer.")
    call_id = models.CharField(max_length=200, help_text="As the model server named it.")
    name = models.CharField(max_length=200)
    arguments = models.TextField(help_text="As the model wrote them: JSON, if it was right.")
    text_to = models.PositiveIntegerField(default=0)
    reasoning_to = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=CallState, default=CallState.RUNNING)
    result = models.TextField(blank=True, default="", help_text="What the model reads.")
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
    def is_unsettled(self) -> bool:
        """Whether the model has not been told what became of it."""
        said = {CallState.REFUSED, CallState.EXPIRED}
        return self.is_open or (self.state in said and not self.result)

    @property
    def can_run_again(self) -> bool:
        """Whether it ended with its answer, and nothing was said after it."""
        answer = self.answer
        ended = answer.is_finished and answer.status not in {"complete", "failed"}
        return ended and self.state == CallState.STOPPED and len(answer.content) <= self.text_to

    @property
    def was_cut_off(self) -> bool:
        """Whether it was running then: it may have had an effect."""
        return self.result == CUT_OFF

    @property
    def title(self) -> str:
        return title_of(self.name)

    @property
    def shown_arguments(self) -> str:
        """For reading: JSON over several lines, anything else as it is."""
        try:
            return json.dumps(json.loads(self.arguments), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.arguments
