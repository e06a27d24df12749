"""Limits of what a request asks for: its model and the length of its answers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from apps.core.label_models.label_model import LabelModel
from apps.core.models import ApiKey
from apps.gateway.errors import GatewayError
from apps.gateway.limits.limits import each
from apps.gateway.program_request import LIMIT_FIELDS, ProgramRequest
from apps.servers.models import Server
from apps.servers.services import Target

# What llama-server calls the number of answers to one prompt; `best_of` is OpenAI's older name.
NUMBER_FIELDS = ("n", "n_cmpl", "best_of")
# Where answers are written, and the field that limits one where a request names none.
DEFAULT_FIELD = {
    "/v1/chat/completions": "max_tokens",
    "/v1/completions": "max_tokens",
    "/v1/messages": "max_tokens",
    "/v1/responses": "max_output_tokens",
    "/infill": "n_predict",
}


def bounded(request: ProgramRequest, key: ApiKey) -> ProgramRequest:
    """Return the request within the largest max_tokens of its key, with that where it named none.

    Its body is written anew then: of a field that stands there twice each reader takes another.

    Raises:
        GatewayError: it asks for more.
    """
    limits = [(subject, limit) for subject, own in each(key) if (limit := own.max_tokens)]
    if not limits and not any(own.allowed_models for _, own in each(key)):
        return request
    fields = dict(request.fields)
    if limits and request.path in DEFAULT_FIELD:
        subject, most = min(limits, key=lambda one: one[1])
        fields = _bounded_fields(fields, request.path, most, subject)
    return replace(request, fields=fields, body=json.dumps(fields, ensure_ascii=True).encode())


def _bounded_fields(
    fields: Mapping[str, Any], path: str, most: int, subject: str
) -> dict[str, Any]:
    answers = _answers(fields)
    named = {name: fields[name] for name in LIMIT_FIELDS if fields.get(name) is not None}
    for name, asked in named.items():
        if type(asked) is not int or asked < 0 or asked * answers > most:
            each_one = f" for all {answers} answers together" if answers > 1 else ""
            detail = f"{subject} may ask for {most:,} tokens at most{each_one}. "
            raise GatewayError(400, "max_tokens_too_large", detail + f"Lower `{name}`.")
    if named:
        return dict(fields)
    if answers > most:
        detail = f"{subject} may ask for {most:,} tokens at most, less than one for each answer."
        raise GatewayError(400, "max_tokens_too_large", f"{detail} Ask for fewer answers.")
    return {**fields, DEFAULT_FIELD[path]: most // answers}


def _answers(fields: Mapping[str, Any]) -> int:
    """Return how many answers a request asks for: so many for each of its prompts."""
    numbers = [fields[name] for name in NUMBER_FIELDS if fields.get(name) is not None]
    for number in numbers:
        if type(number) is not int or number < 1:
            raise GatewayError(400, "bad_number", "`n` is a whole number from 1 on.")
    prompt = fields.get("prompt")
    is_many = isinstance(prompt, list) and any(not isinstance(one, int) for one in prompt)
    return max(numbers, default=1) * (len(prompt) if is_many and prompt else 1)


def allowed_targets(targets: Iterable[Target], key: ApiKey) -> list[Target]:
    """Return the servers whose model the key may use.

    Raises:
        GatewayError: there is none.
    """
    found = list(targets)
    for subject, own in each(key):
        if own.allowed_models:
            left = [one for one in found if allows(own.allowed_models, one.server, one.model)]
            if not left:
                model = found[0].server.facts_of(found[0].model).id
                raise _forbidden(subject, model, own.allowed_models)
            found = left
    return found


def allows(names: Iterable[str], server: Server, model: str) -> bool:
    """True if one of the names, or aliases, is this model at this server."""
    wanted = server.facts_of(model).id
    return any(
        name == f"{server.name}/{wanted}" or server.facts_of(name).id == wanted for name in names
    )


def may_use(key: ApiKey, server: Server, model: str) -> bool:
    return all(
        allows(own.allowed_models, server, model) for _, own in each(key) if own.allowed_models
    )


def may_use_everywhere(key: ApiKey, server: Server, model: str) -> bool:
    """True if the key may use this model by its own name, at whichever server has it."""
    wanted = server.facts_of(model).id
    return all(
        any(server.facts_of(name).id == wanted for name in own.allowed_models)
        for _, own in each(key)
        if own.allowed_models
    )


def may_use_own(key: ApiKey, model: LabelModel) -> bool:
    return _forbidding_own(key, model) is None


def check_own_model(key: ApiKey, model: LabelModel) -> None:
    """Refuse a model of the workbench itself that the key may not use.

    Raises:
        GatewayError
    """
    if (error := _forbidding_own(key, model)) is not None:
        raise error


def _forbidding_own(key: ApiKey, model: LabelModel) -> GatewayError | None:
    for subject, own in each(key):
        if own.allowed_models and not set(model.names) & set(own.allowed_models):
            return _forbidden(subject, model.id, own.allowed_models)
    return None


def _forbidden(subject: str, model: str, names: Iterable[str]) -> GatewayError:
    listed = ", ".join(names)
    detail = f"{subject} may not use “{model[:100]}”. Allowed: {listed[:500]}."
    return GatewayError(403, "model_not_allowed", detail)
