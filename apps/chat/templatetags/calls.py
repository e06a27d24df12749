"""An answer's text and the calls in it, as they came."""

from django import template

from apps.chat.models import Message
from apps.chat.tools import history

register = template.Library()


@register.filter
def parts(message: Message) -> list[history.Part]:
    return history.parts(message.content, message.reasoning, message.tool_calls.all())
