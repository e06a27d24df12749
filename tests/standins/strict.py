"""OpenAI and others that refuse fields they do not know, each in words of its own."""

import json
from typing import Any

from tests.standins.web import App, Forward, Reply, Request

CHAT_FIELDS = {
    *("model", "messages", "stream", "stream_options", "temperature", "top_p", "seed", "stop"),
    *("response_format", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens"),
}
# Mistral's own names for two of them, and usage in every last chunk.
MISTRAL_FIELDS = (CHAT_FIELDS | {"max_tokens", "random_seed"}) - {
    *("max_completion_tokens", "seed", "stream_options"),
}
EMBEDDING_FIELDS = {"model", "input"}


class Strict(App):
    """`dialect`: openai, openai-one (names one field at a time), mistral, groq, openrouter or vllm.

    Ollama, LM Studio, SGLang and vLLM as they come ignore what they do not know: "lenient".
    """

    async def answer(self, request: Request) -> Reply | Forward:
        if self.config.api_key and request.key != self.config.api_key:
            return refused(401, "Incorrect API key provided.", "invalid_api_key")
        match request.method, request.path:
            case "GET", "/v1/models":
                names = [m.id for m in self.config.models]
                items = [{"id": n, "object": "model", "owned_by": "organization"} for n in names]
                return Reply(200, {"object": "list", "data": items})
            case "POST", "/v1/chat/completions" | "/v1/embeddings":
                model = self.memory.model(str(request.json.get("model", "")))
                if model is None:
                    return refused(404, "The model `x` does not exist.", "model_not_found")
                dialect = self.config.dialect
                chat_fields = MISTRAL_FIELDS if dialect == "mistral" else CHAT_FIELDS
                known = EMBEDDING_FIELDS if "embed" in request.path else chat_fields
                unknown = sorted(request.json.keys() - known)
                if unknown and dialect != "lenient":
                    return DIALECTS[dialect](unknown)
                return Forward(request.path, model)
        return refused(404, f"Invalid URL ({request.method} {request.path})", "")


def refused(status: int, message: str, code: str, param: str | None = None) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status, {"error": error})


def _openai(fields: list[str]) -> Reply:
    ending = "s" if len(fields) > 1 else ""
    message = f"Unrecognized request argument{ending} supplied: {', '.join(fields)}"
    return refused(400, message, "")


def _openai_one(fields: list[str]) -> Reply:
    field = fields[0]
    if field == "max_tokens":
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        return refused(400, message, "unsupported_parameter", field)
    return refused(400, f"Unknown parameter: '{field}'.", "unknown_parameter", field)


def _mistral(fields: list[str]) -> Reply:
    detail: list[dict[str, Any]] = [
        {
            "type": "extra_forbidden",
            "loc": ["body", field],
            "msg": "Extra inputs are not permitted",
            "input": 1,
        }
        for field in fields
    ]
    return Reply(422, {"object": "error", "message": {"detail": detail}})


def _groq(fields: list[str]) -> Reply:
    message = "; ".join(f"property '{field}' is unsupported" for field in fields)
    return refused(400, message, "")


def _openrouter(fields: list[str]) -> Reply:
    """Pass on what the provider has said, as text inside of its own error."""
    raw = json.dumps(_openai_one(fields).body)
    metadata = {"raw": raw, "provider_name": "OpenAI"}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return Reply(400, {"error": error})


def _vllm(fields: list[str]) -> Reply:
    problems = "".join(
        f"{{'type': 'extra_forbidden', 'loc': ('body', '{field}'), "
        "'msg': 'Extra inputs are not permitted', 'input': True}"
        for field in fields
    )
    return Reply(400, {"object": "error", "message": f"[{problems}]", "code": 400})


DIALECTS = {
    "openai": _openai,
    "openai-one": _openai_one,
    "mistral": _mistral,
    "groq": _groq,
    "openrouter": _openrouter,
    "vllm": _vllm,
}
