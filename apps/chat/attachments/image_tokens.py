"""The tokens of an image, before it is sent.

llama.cpp counts images as it counts texts, by their size alone (builds since the summer of 2026).
For any other server, only the cost of earlier images is known.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import Count

from apps.chat.attachments.prompt_files import data_url
from apps.chat.models import Attachment, AttachmentKind, Message
from apps.chat.prompt.token_estimate import text_bytes, tokens_of
from apps.llm.client import Message as LLMMessage
from apps.llm.errors import LLMError
from apps.servers import services as llm

COUNT_SECONDS = 5.0
PLACEHOLDER = "."  # some templates refuse a question without words
# A build that counts only texts counts the mark that it puts in a picture's place: 44 characters.
MARK_TOKENS = 44
# The text of an earlier prompt is estimated: it has to be a small part of it.
MAX_TEXT_SHARE = 0.25


def count_images(attachments: Iterable[Attachment], target: llm.Target | None) -> None:
    """Set the tokens of each image with this model, or None. Saves nothing."""
    images = [one for one in attachments if one.kind == AttachmentKind.IMAGE]
    urls = [data_url(image) for image in images]
    costs = async_to_sync(count)(urls, target) if target else [None] * len(images)
    for image, tokens in zip(images, costs, strict=True):
        image.tokens = tokens


async def count(urls: Sequence[str], target: llm.Target) -> list[int | None]:
    """Return the tokens of each image, a data URL, as the server counts them.

    None: the server does not count images, is slow, or would have to load the model first.
    """
    vision = target.server.facts_of(target.model).vision
    if not urls or vision is False or not target.is_loaded:
        return [None] * len(urls)
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            counts = (_count(url, target) for url in ("", *urls))
            without, *found = await asyncio.gather(*counts)
    except TimeoutError:
        return [None] * len(urls)
    costs = [tokens - without if tokens and without else 0 for tokens in found]
    return [cost if cost > MARK_TOKENS else None for cost in costs]


async def _count(url: str, target: llm.Target) -> int | None:
    parts = [{"type": "text", "text": PLACEHOLDER}]
    picture = [{"type": "image_url", "image_url": {"url": url}}] if url else []
    message = cast(LLMMessage, {"role": "user", "content": [*parts, *picture]})
    try:
        return await target.client.count_tokens(target.model, [message])
    except LLMError:
        return None


def describe_unknown(owner: User, target: llm.Target | None) -> str:
    """Return what the page shows in place of an image's tokens if the server counts none."""
    if target is None:
        return "tokens unknown: no server"
    if (cost := last_cost(owner, target.model)) is None:
        return "tokens unknown until this model’s first image"
    return f"tokens unknown until sent; this model’s last image took about {cost:,}"


def last_cost(owner: User, model: str) -> int | None:
    """Return about what the newest image of a person cost with a model; None if unknown."""
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
        if answer.prompt_prefix or answer.answer_request.continues is not None:
            continue
        assert answer.parent is not None
        assert answer.prompt_tokens is not None
        system = answer.system_prompt.text if answer.system_prompt else ""
        text = tokens_of(text_bytes(system) + text_bytes(answer.parent.content), 2)
        if text <= MAX_TEXT_SHARE * answer.prompt_tokens:
            return round(answer.prompt_tokens - text, -1)
    return None
