"""Saving an answer at its end. Synchronous."""

from django.db import transaction
from django.utils import timezone

from apps.chat.answering.outcome import Outcome
from apps.chat.models import CallState, Conversation, Message, Status, ToolCall, stop_calls
from apps.chat.prompt import cache_loss, cache_record
from apps.chat.prompt.build import PromptInput
from apps.chat.streaming.event_log import AnswerLog
from apps.core.text.storable import to_storable

# Also over "interrupted": should a heartbeat have come late, the whole text is here.
WRITABLE = [Status.QUEUED, Status.INTERRUPTED]


@transaction.atomic
def save(
    answer_id: int, log: AnswerLog, outcome: Outcome, prompt: PromptInput | None
) -> list[ToolCall]:
    """Save an answer with its outcome. Return the calls that ended with it."""
    saved = Message.objects.filter(pk=answer_id, status__in=WRITABLE).update(
        status=outcome.status,
        content=to_storable(log.text),
        reasoning=to_storable(log.reasoning),
        error_code=outcome.error_code,
        error_detail=outcome.error_detail,
        finish_reason=outcome.finish_reason,
        model=outcome.model,
        max_tokens=outcome.max_tokens,
        system_prompt=prompt and prompt.system_prompt,
        cut_before_message=outcome.cut_before_message,
        prompt_prefix=outcome.prefix.to_json(),
        reasoning_ms=outcome.reasoning_ms(),
        finished=timezone.now(),
        **outcome.usage_fields(),
    )
    # An answer that continues another has that one's calls before it calls anything itself.
    may_have_calls = outcome.has_called or prompt is None or prompt.previous_calls
    stopped = _stop_open_calls(answer_id, outcome.status) if may_have_calls else []
    if saved and prompt is not None:
        Conversation.objects.filter(pk=prompt.conversation).update(updated=timezone.now())
        if outcome.server and outcome.uncached_tokens >= cache_loss.MIN_LOST_TOKENS:
            cache_record.record_loss(Message.objects.get(pk=answer_id), outcome.server)
    return stopped


def _stop_open_calls(answer_id: int, status: Status) -> list[ToolCall]:
    calls = ToolCall.objects.unfinished().filter(answer=answer_id)
    if status == Status.INTERRUPTED:  # people can still approve calls that wait
        calls = calls.exclude(state=CallState.WAITING)
    return stop_calls(calls)
