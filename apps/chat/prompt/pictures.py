"""What a picture costs in tokens, before it is sent.

llama.cpp counts pictures as it counts texts, by their size alone (builds since the summer of 2026).
Of any other server it is only known what earlier pictures came to.
"""

import asyncio
from collections.abc import Sequence
from typing import cast

from django.contrib.auth.models import User
from django.db.models import Count

from apps.chat.models import AttachmentKind, Message, Role
from apps.chat.prompt import context
from apps.llm.client import Message as LLMMessage
from apps.llm.errors import LLMError
from apps.servers import services as llm

COUNT_SECONDS = 5.0
BESIDE = "."  # some templates refuse a question without words
# A build that counts only texts counts the mark that it puts in a picture's place: 44 characters.
MARK_TOKENS = 44
# Of an earlier prompt, what was not its picture is estimated: it has to be little.
MOST_BESIDE = 0.25


async def count(urls: Sequence[str], target: llm.Target) -> list[int | None]:
    """Tokens of each picture, a data URL, as the server counts them.

    None: it counts no pictures, or not soon, or the model would have to be loaded for that.
    """
    vision = target.server.facts_of(target.model).vision
    if not urls or vision is False or not target.is_loaded:
        return [None] * len(urls)
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            asked = (_count(url, target) for url in ("", *urls))
            without, *found = await asyncio.gather(*asked)
    except TimeoutError:
        return [None] * len(urls)
    costs = [tokens - without if tokens and without else 0 for tokens in found]
    return [cost if cost > MARK_TOKENS else None for cost in costs]


async def _count(url: str, target: llm.Target) -> int | None:
    parts = [{"type": "text", "text": BESIDE}]
    picture = [{"type": "image_url", "image_url": {"url": url}}] if url else []
    message = cast(LLMMessage, {"role": "user", "content": [*parts, *picture]})
    try:
        return await target.client.count_tokens(target.model, [message])
    except LLMError:
        return None


def unknown(owner: User, target: llm.Target | None) -> str:
    """What is said in place of a picture's tokens where the server counts none."""
    if target is None:
        return "tokens unknown: no server"
    if (cost := last_cost(owner, target.model)) is None:
        return "tokens unknown until this model’s first image"
    return f"tokens unknown until sent; this model’s last image took about {cost:,}"


def last_cost(owner: User, model: str) -> int | None:
    """About what his newest picture came to with a model: the prompt less the words around it."""
    answers = (
        Message.objects.owned_by(owner)
        .answers()
        .filter(model=model, prompt_tokens__gt=0, parent__parent=None)
        .filter(parent__attachments__kind=AttachmentKind.IMAGE)
        .annotate(pictures=Count("parent__attachments"))
        .filter(pictures=1)
        .exclude(parent__attachments__kind__in=[AttachmentKind.TEXT, AttachmentKind.PDF])
        .select_related("parent", "system_prompt")
        .order_by("-pk")
    )
    for answer in answers[:10]:
        if answer.prompt_prefix or "continues" in answer.request:
            continue
        assert answer.parent is not None
        assert answer.prompt_tokens is not None
        question = context.Turn(answer.parent.pk, Role.USER, answer.parent.content)
        system = answer.system_prompt.text if answer.system_prompt else None
        beside = context.build(system, [question], context=None).tokens
        if beside <= MOST_BESIDE * answer.prompt_tokens:
            return round(answer.prompt_tokens - beside, -1)
    return None
