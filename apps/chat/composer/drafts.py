"""The next chat of a person: its settings before its first message, and starting it."""

from collections.abc import Sequence

from django.contrib.auth.models import User

from apps.chat.composer import several
from apps.chat.conversations import projects, services
from apps.chat.models import Conversation, Project


def draft_of(person: User, project: Project | None = None) -> Conversation:
    """Return the row with the settings of a person's next chat; create it the first time.

    A project has a draft of its own, which begins with the settings of the project.
    """
    found, is_new = Conversation.drafts.get_or_create(
        owner=person, is_draft=True, draft_project=project
    )
    if is_new and project is not None:
        projects.reset_draft(project, found)
    return found


def start_chat(
    draft: Conversation, content: str, *, files: Sequence[str] = (), is_temporary: bool = False
) -> Conversation:
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
        project=draft.draft_project,
        is_temporary=is_temporary,
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
