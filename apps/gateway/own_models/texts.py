"""Finds the text in a request to a model that labels texts. Pure."""

from collections.abc import Mapping
from typing import Any

from apps.gateway.errors import GatewayError


def text_of_state(fields: Mapping[str, Any]) -> str:
    """Return the text that questions are about.

    Raises:
        GatewayError: there is none, or something else than text.
    """
    if fields.get("files"):
        raise GatewayError(400, "no_vision", "A classifier reads text alone. Leave out `files`.")
    state = fields.get("state")
    if isinstance(state, list):
        return text_of_messages(state, "state")
    if isinstance(state, dict) and len(state) == 1:
        [state] = state.values()
    if not isinstance(state, str):
        detail = "A classifier reads one text: send `state` as a string or as chat messages."
        raise GatewayError(400, "bad_state", detail)
    return state


def text_of_messages(messages: Any, name: str = "messages") -> str:
    """Return the text of the last message of a user.

    Raises:
        GatewayError: there is none, or it has other parts than text.
    """
    found = messages if isinstance(messages, list) else []
    mine = [one for one in found if isinstance(one, dict) and one.get("role") == "user"]
    if not mine:
        detail = f"A classifier labels the last message of the user. `{name}` has none."
        raise GatewayError(400, "no_text", detail)
    content = mine[-1].get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [one.get("text") if isinstance(one, dict) else None for one in parts]
    found = [text for text in texts if isinstance(text, str)]
    if len(found) < len(texts):
        raise GatewayError(400, "no_vision", "A classifier reads text alone, no images or audio.")
    return "\n".join(found)
