"""One message to several models: their answers stand next to each other."""

from collections.abc import Sequence

from apps.chat.answering import runner
from apps.chat.conversations import services
from apps.chat.models import AnswerRequest, AnswerSettings, Conversation, Message
from apps.chat.presets import model_choices

MAX_MODELS = 4


def ask(
    chat: Conversation, content: str, *, files: Sequence[str] = ()
) -> tuple[Message, list[Message]]:
    """Add a message and start its answer by each model of the chat; return them, the first's first.

    A model that is gone is left out.

    Raises:
        ChatError: as `services.ask`.
    """
    question, first = services.ask(chat, content, files=files)
    answers = [first]
    for key in chat.other_models[: MAX_MODELS - 1]:
        try:
            server, model = model_choices.parse_key(key)
        except model_choices.ModelNotAvailable:
            continue
        settings = AnswerSettings(
            server.pk if server else None, model, chat.system_prompt_id, chat.sampling
        )
        request = AnswerRequest(settings=settings, compared_with=first.pk)
        other = services.create_answer(question, request)
        runner.start_answer(other)
        answers.append(other)
    return question, answers


def toggle(chat: Conversation, key: str) -> None:
    """Add a model to those that answer next to the first, or remove it.

    Raises:
        ModelNotAvailable: no such server.
    """
    model_choices.parse_key(key)
    others = [other for other in chat.other_models if other != key]
    if len(others) == len(chat.other_models) and key != model_choices.key_of(
        chat.server_id, chat.model
    ):
        others.append(key)
    chat.other_models = others[-(MAX_MODELS - 1) :]
