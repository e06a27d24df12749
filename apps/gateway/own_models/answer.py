"""Answers a program's request with a label, where it names a model of the workbench itself."""

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from apps.core.label_models.label_model import LabelModel, LabelModelError, LabelScores
from apps.core.label_models.registry import Provider, provider_of
from apps.core.models import ApiKey
from apps.core.schemas.json_types import JsonObject
from apps.gateway.answer import Answer
from apps.gateway.errors import GatewayError
from apps.gateway.limits.answers import check_own_model
from apps.gateway.own_models.completions import check_options, chunks, completion
from apps.gateway.own_models.questions import answer_questions
from apps.gateway.own_models.texts import text_of_messages, text_of_state
from apps.gateway.program_request import ProgramRequest
from apps.gateway.targets import has_model
from apps.runtime.async_db import in_db
from apps.servers.models import Server

ReadText = Callable[[Mapping[str, Any]], str]
SendLabel = Callable[[ProgramRequest, LabelModel, LabelScores, Answer], Awaitable[None]]
COMPLETIONS = "/v1/chat/completions"
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")


async def answer_with_label(
    request: ProgramRequest, key: ApiKey, servers: list[Server], answer: Answer
) -> bool:
    """Answer a request; return False where it is for a model server.

    Raises:
        GatewayError: there is no answer, and nothing was sent.
    """
    provider = provider_of(request.model)
    if provider is None:
        return False
    try:
        model = await in_db(provider.find_model, key.user_id, request.model)
        if model is None:
            if has_model(servers, request.model):
                return False
            raise await _unknown(provider, request, key)
        check_own_model(key, model)
        await _answer(provider, model, request, key, answer)
    except LabelModelError as error:
        raise _gateway_error(error) from error
    return True


async def complete_with_label(request: ProgramRequest, key: ApiKey) -> bytes:
    """Return the whole chat completion of a model of the workbench itself.

    Raises:
        GatewayError: there is none. With `retry_after` there may be one later.
    """
    provider, model = await in_db(find_own_model, key, request.model)
    text = _text_to_complete(request.fields)
    try:
        scores = await provider.score_text(key.user_id, model, text, request.lane.value)
    except LabelModelError as error:
        raise _gateway_error(error) from error
    return completion(_begin(model, scores), request.fields, scores)


def find_own_model(key: ApiKey, name: str) -> tuple[Provider, LabelModel]:
    """Return a model of the workbench itself that the key may use. Blocks.

    Raises:
        GatewayError: there is no such model, or the key may not use it.
    """
    provider = provider_of(name)
    try:
        model = provider.find_model(key.user_id, name) if provider else None
    except LabelModelError as error:
        raise _gateway_error(error) from error
    if provider is None or model is None:
        raise GatewayError(404, "model_not_found", f"You have no classifier “{name[:100]}”.")
    check_own_model(key, model)
    return provider, model


def _gateway_error(error: LabelModelError) -> GatewayError:
    return GatewayError(error.status, error.code, str(error), retry_after=error.retry_after)


async def _unknown(provider: Provider, request: ProgramRequest, key: ApiKey) -> GatewayError:
    mine = await in_db(provider.list_models, key.user_id)
    listed = ", ".join(" or ".join(model.names) for model in mine[:8])
    have = f"You have {listed}." if mine else "You have no classifier."
    detail = f"No model server and no classifier of yours is “{request.model[:100]}”. {have}"
    return GatewayError(404, "model_not_found", detail)


async def _answer(
    provider: Provider, model: LabelModel, request: ProgramRequest, key: ApiKey, answer: Answer
) -> None:
    if request.path not in _ROUTES:
        detail = f"A classifier answers {' and '.join(_ROUTES)}, not {request.path}."
        raise GatewayError(400, "wrong_route", detail)
    read_text, send = _ROUTES[request.path]
    text = read_text(request.fields)
    answer.record.start_own(model.id)
    scores = await provider.score_text(key.user_id, model, text, request.lane.value)
    await send(request, model, scores, answer)


def _text_to_complete(fields: Mapping[str, Any]) -> str:
    check_options(fields)
    return text_of_messages(fields.get("messages"))


async def _send_completion(
    request: ProgramRequest, model: LabelModel, scores: LabelScores, answer: Answer
) -> None:
    begin = _begin(model, scores)
    if not request.is_streamed:
        await answer.begin(200, [JSON])
        await answer.end(completion(begin, request.fields, scores))
        return
    answer.is_events = True
    await answer.begin(200, [EVENTS, (b"cache-control", b"no-store")])
    for chunk in chunks(begin, request.fields, scores):
        await answer.write(chunk)
    await answer.end()


def _begin(model: LabelModel, scores: LabelScores) -> JsonObject:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": model.id,
        "system_fingerprint": f"version {scores.version}",
    }


async def _send_answers(
    request: ProgramRequest, model: LabelModel, scores: LabelScores, answer: Answer
) -> None:
    body = {
        "model": model.id,
        "answers": answer_questions(request.fields, scores),
        # The vector may have been there already: nobody counted tokens.
        "usage": {"input_tokens": None, "output_tokens": 0},
    }
    await answer.begin(200, [JSON])
    await answer.end(json.dumps(body).encode())


_ROUTES: Mapping[str, tuple[ReadText, SendLabel]] = {
    COMPLETIONS: (_text_to_complete, _send_completion),
    "/v1/systemone": (text_of_state, _send_answers),
}
