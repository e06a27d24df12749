"""Records of lost prompt cache, stored with each answer. Synchronous."""

from datetime import timedelta

from apps.chat.models import Message
from apps.chat.prompt import cache_loss
from apps.chat.prompt.branch import branch_before
from apps.servers.models import Server

BYTES_PER_TOKEN = 4


def record_loss(answer: Message, server: Server) -> None:
    """Store how much of a prompt was processed again with its answer, and why."""
    loss = _loss_of(answer, server)
    if loss is not None:
        answer.reprocessed_tokens, answer.reprocessed_reason = loss.tokens, loss.reason
        answer.save(update_fields=["reprocessed_tokens", "reprocessed_reason"])


def _loss_of(answer: Message, server: Server) -> cache_loss.Loss | None:
    earlier, is_sibling = _before(answer)
    if earlier is None:
        return None
    system = answer.system_prompt.text if answer.system_prompt else ""
    ttl = server.facts_of(answer.model).ttl
    return cache_loss.find_loss(
        _request_of(answer),
        _request_of(earlier),
        is_sibling=is_sibling,
        others_with_same_prompt=_others_asked(answer, earlier),
        system_tokens=len(system.encode()) // BYTES_PER_TOKEN,
        sleeps_after=timedelta(seconds=ttl) if ttl else None,
    )


def _before(answer: Message) -> tuple[Message | None, bool]:
    """Return the answer whose prompt this one extends, and whether both answer one question."""
    counted = Message.objects.answers().exclude(prompt_tokens=None)
    siblings = counted.filter(parent_id=answer.parent_id, pk__lt=answer.pk)
    if sibling := siblings.order_by("-pk").first():
        return sibling, True
    branch = reversed(branch_before(answer))
    return next((m for m in branch if m.prompt_tokens is not None), None), False


def _request_of(answer: Message) -> cache_loss.CachedRequest:
    prefix = answer.sent_prefix
    return cache_loss.CachedRequest(
        model=answer.model,
        system_prompt=answer.system_prompt_id,
        cut_before_message=answer.cut_before_message,
        prompt_tokens=answer.prompt_tokens or 0,
        cached_tokens=answer.cached_tokens or 0,
        completion_tokens=answer.completion_tokens or 0,
        at=answer.finished or answer.created,
        tools=prefix.tools_hash,
        front=(prefix.summary, *(prefix.pinned or ())),
    )


def _others_asked(answer: Message, earlier: Message) -> bool:
    """Return True if other chats with the same system prompt were answered in between."""
    if answer.system_prompt_id is None or earlier.finished is None:
        return False
    others = Message.objects.answers().exclude(conversation_id=answer.conversation_id)
    return others.filter(
        system_prompt_id=answer.system_prompt_id,
        finished__gt=earlier.finished,
        created__lt=answer.created,
    ).exists()
