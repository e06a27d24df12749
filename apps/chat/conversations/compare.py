"""Two answers to one question side by side: from another model, or with a preset."""

from dataclasses import replace

from django.db import transaction

from apps.chat.answering import runner
from apps.chat.conversations import services
from apps.chat.models import AnswerSettings, Conversation, Message, Preset
from apps.servers.models import Server


def compare(
    answer: Message,
    *,
    server: Server | None = None,
    model: str = "",
    preset: Preset | None = None,
    beside: bool = True,
) -> Message:
    """Start another answer to the same question, from another model or with a preset.

    Args:
        server, model: by default those of the preset, else those of the conversation.
        preset: replaces all settings of the conversation.
        beside: show both, until one is kept. Else it is one more version.

    Raises:
        StillAnswering, MessageDeleted, LimitReached
    """
    services.require_finished(answer)
    assert answer.parent is not None
    source: Conversation | Preset = Conversation.objects.get(pk=answer.conversation_id)
    name = ""
    if preset is not None and preset.pk is not None:
        source, name = preset, preset.name
    settings = AnswerSettings(
        source.server_id, source.model, source.system_prompt_id, source.sampling
    )
    if server is not None:
        settings = replace(settings, server=server.pk, model=model)
    request = replace(
        answer.answer_request.without_other_answers(),
        settings=settings,
        compared_with=answer.pk if beside else None,
        preset=name,
    )
    with transaction.atomic():
        other = services.create_answer(answer.parent, request)
    runner.start_answer(other)
    return other


def keep(answer: Message) -> None:
    """End a comparison: continue the conversation from this answer, with its settings."""
    for other in Message.objects.filter(parent_id=answer.parent_id, request__has_key="beside"):
        other.request = replace(other.answer_request, compared_with=None).to_json()
        other.save(update_fields=["request"])
    Conversation.objects.filter(pk=answer.conversation_id).update(other_models=[])
    if (settings := answer.answer_request.settings) is not None:
        Conversation.objects.filter(pk=answer.conversation_id).update(
            server=Server.objects.filter(pk=settings.server or 0).first(),
            model=settings.model,
            system_prompt_id=settings.system_prompt,
            params=settings.params.to_json(),
        )
    services.show_branch(answer)
