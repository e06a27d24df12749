"""An answer's text and tool calls, in order."""

from django import template

from apps.chat.models import Message
from apps.chat.prompt.branch import AnswerPart, split_at_calls

register = template.Library()


@register.filter
def parts(message: Message) -> list[AnswerPart]:
    return split_at_calls(message.content, message.reasoning, message.tool_calls.all())
