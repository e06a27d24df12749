"""One question, two answers side by side: of another model, or under a preset."""

from django.db import transaction

from apps.chat.answering import runner
from apps.chat.conversations import services
from apps.chat.models import Conversation, Message, Preset
from apps.chat.prompt.build import Settings
from apps.servers.models import Server


def beside(
    answer: Message, *, server: Server | None = None, model: str = "", preset: Preset | None = None
) -> Message:
    """Another answer to the same question, written as somebody else would.

    Args:
        server, model: of whom it is asked; by default as the preset says, else the conversation.
        preset: all of its settings take the place of the conversation's.

    Raises:
        StillAnswering
    """
    runner.settle([answer])
    if not answer.is_finished:
        raise services.StillAnswering
    assert answer.parent is not None
    conversation = Conversation.objects.get(pk=answer.conversation_id)
    settings: Settings = {
        "server": conversation.server_id,
        "model": conversation.model,
        "system_prompt": conversation.system_prompt_id,
        "params": conversation.params,
    }
    if preset is not None and preset.pk is not None:
        settings = {
            "server": preset.server_id,
            "model": preset.model,
            "system_prompt": preset.system_prompt_id,
            "params": preset.params,
        }
    if server is not None:
        settings |= {"server": server.pk, "model": model}
    request = services.anew(answer.request) | {"as": settings, "beside": answer.pk}
    request["preset"] = preset.name if preset is not None and preset.pk is not None else ""
    with transaction.atomic():
        other = services.open_answer(answer.parent, request)
    runner.begin(other)
    return other


def keep(answer: Message) -> None:
    """Ends a comparison: this answer is gone on from, and as it was asked if it was asked so."""
    settings: Settings | None = answer.request.get("as")
    for compared in Message.objects.filter(parent_id=answer.parent_id, request__has_key="beside"):
        compared.request = {k: v for k, v in compared.request.items() if k != "beside"}
        compared.save(update_fields=["request"])
    if settings is not None:
        known = Server.objects.filter(pk=settings["server"] or 0).first()
        Conversation.objects.filter(pk=answer.conversation_id).update(
            server=known,
            model=settings["model"],
            system_prompt_id=settings["system_prompt"],
            params=settings["params"],
        )
    services.show_branch(answer)
