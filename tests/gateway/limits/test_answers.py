"""Limits of models and of the length of answers."""

import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from apps.core.models import ApiKey, PersonLimits
from apps.gateway.errors import GatewayError
from apps.gateway.limits.answers import bounded
from apps.gateway.program_request import ProgramRequest, read_request
from apps.servers.models import Server
from tests.gateway.test_bytes import Recorder, odd, recorder

__all__ = ["odd", "recorder"]
CHAT, PLAIN, RESPONSES, INFILL = (
    *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/infill"),
)


def asked(path: str, most: int, fields: dict[str, Any] | str) -> ProgramRequest:
    body = fields if isinstance(fields, str) else json.dumps(fields)
    user = User(pk=1)
    user.program_limits = PersonLimits(user=user, max_tokens=most)
    key = ApiKey(name="laptop", user=user, max_tokens=1000)
    return bounded(read_request(path, [], body.encode()), key)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"max_tokens": 101}),
        (CHAT, {"max_completion_tokens": 101}),
        (CHAT, {"max_tokens": 5, "max_completion_tokens": 101}),
        (RESPONSES, {"max_output_tokens": 101}),
        (INFILL, {"n_predict": 101}),
        (PLAIN, {"n_predict": -1}),
        (CHAT, {"max_tokens": 51, "n": 2}),
        (CHAT, {"max_tokens": 51, "n_cmpl": 2}),
        (PLAIN, {"max_tokens": 51, "prompt": ["a", "b"]}),
        (PLAIN, {"max_tokens": 26, "prompt": ["a", "b"], "n": 2}),
        (CHAT, {"max_tokens": 10.5}),
        (CHAT, {"max_tokens": True}),
        (CHAT, {"max_tokens": "9"}),
        (CHAT, {"n": 101}),
        (CHAT, {"n": 0.5, "max_tokens": 1}),
    ],
)
def test_more_than_the_limit_is_refused(path: str, fields: dict[str, Any]) -> None:
    with pytest.raises(GatewayError) as refused:
        asked(path, 100, fields)
    assert refused.value.status == 400
    assert refused.value.retry_after is None


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        (CHAT, {"max_tokens": 100}, {"max_tokens": 100}),
        (CHAT, {}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": None, "n": 3}, {"max_tokens": 33, "n": 3}),
        (RESPONSES, {}, {"max_output_tokens": 100}),
        (INFILL, {}, {"n_predict": 100}),
        (PLAIN, {"prompt": [1, 2, 3]}, {"prompt": [1, 2, 3], "max_tokens": 100}),
        ("/v1/embeddings", {"input": "a"}, {"input": "a"}),
        (CHAT, '{"max_tokens":900,"max_tokens":9}', {"max_tokens": 9}),
    ],
)
def test_answers_without_a_limit_get_the_largest(
    path: str, fields: dict[str, Any] | str, expected: dict[str, Any]
) -> None:
    request = asked(path, 100, fields)
    assert json.loads(request.body) == dict(request.fields) == expected
    assert request.body.count(b"max_tokens") <= 1


@pytest.mark.django_db(transaction=True)
async def test_a_key_may_use_its_models_alone(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder], token: str
) -> None:
    key = await ApiKey.objects.aget()
    for names, status in (
        *((["odd"], 200), (["other"], 200), (["Odd/odd"], 200)),
        *((["different"], 403), (["Elsewhere/odd"], 403)),
    ):
        key.allowed_models = names
        await key.asave()
        for model in ("odd", "other", "Odd/odd"):
            answer = await program.post(CHAT, json={"model": model})
            assert answer.status_code == status
        listed = (await program.get("/v1/models")).json()["data"]
        assert [one["id"] for one in listed] == (["odd"] if status == 200 else [])
    assert answer.json()["error"] == {
        "message": "The key “laptop” may not use “odd”. Allowed: Elsewhere/odd.",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_allowed",
    }
    assert len(recorder.seen) == 9
