"""The next chat of a person: its settings before its first message, and starting it."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from apps.chat.composer import several
from apps.chat.conversations import services
from apps.chat.models import Conversation


def draft_of(person: User) -> Conversation:
    """Return the row with the settings of a person's next chat; create it the first time."""
    return Conversation.drafts.get_or_create(owner=person, is_draft=True)[0]


def start_chat(draft: Conversation, content: str, *, files: Sequence[str] = ()) -> Conversation:
    """Start a chat with the settings of a draft, which keeps all but structured output.

    Raises:
        ChatError: as `services.ask`. Then no chat was started.
    """
    services.clean_question(content)
    chat = services.open_conversation(
        owner=draft.owner,
        server=draft.server,
        model=draft.model,
        system_prompt=draft.system_prompt,
        params=draft.sampling,
        tools=draft.tool_settings,
        response_format=draft.response_format,
    )
    chat.preset, chat.other_models = draft.preset, draft.other_models
    chat.save(update_fields=["preset", "other_models"])
    try:
        several.ask(chat, content, files=files)
    except BaseException:
        chat.delete()
        raise
    if draft.response_format:
        draft.response_format = {}
        draft.save(update_fields=["response_format"])
    return chat
