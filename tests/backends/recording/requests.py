"""The requests that the workbench sends to each kind of server, by name, in this order."""

from typing import Any

Sent = tuple[str, str, Any]


def chat(model: str, text: str = "Hello", *, max_tokens: int = 4, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "max_tokens": max_tokens, **more}


STREAM = {"stream": True, "stream_options": {"include_usage": True}}
LONG = "x" * 9_000
V1, OLLA = "/v1", "/olla/openai/v1"


def common(prefix: str) -> dict[str, Sent]:
    """What each kind is asked."""
    path = f"{prefix}/chat/completions"
    return {
        "list of models": ("GET", f"{prefix}/models", None),
        "answer": ("POST", path, chat("alpha")),
        "stream": ("POST", path, chat("alpha", **STREAM)),
        "prompt too long": ("POST", path, chat("alpha", LONG)),
        "unknown model": ("POST", path, chat("nobody-knows")),
        "embeddings": ("POST", f"{prefix}/embeddings", {"model": "embed", "input": ["Hello"]}),
    }


REQUESTS: dict[str, dict[str, Sent]] = {
    "router": {
        "health": ("GET", "/health", None),
        "props": ("GET", "/props", None),
        "props of a model that is not loaded": (
            *("GET", "/props?model=alpha&autoload=false"),
            None,
        ),
        **common(V1),
        "props of a model": ("GET", "/props?model=embed&autoload=false", None),
        "slots": ("GET", "/slots?model=embed&autoload=false", None),
        "list with a loaded model": ("GET", "/v1/models", None),
        "wrong key": ("GET", "/v1/models", None),
        "load": ("POST", "/models/load", {"model": "alpha"}),
        "unload of a model that is not loaded": ("POST", "/models/unload", {"model": "beta"}),
        "broken model": ("POST", "/v1/chat/completions", chat("broken")),
    },
    "llama-swap": {
        "health": ("GET", "/health", None),
        **common(V1),
        "running": ("GET", "/running", None),
        "broken model": ("POST", "/v1/chat/completions", chat("broken")),
        "wrong key": ("GET", "/v1/models", None),
    },
    "olla": {
        "health": ("GET", "/internal/health", None),
        "no such path": ("GET", "/v1/models", None),
        **common(OLLA),
    },
    "litellm": {
        "health": ("GET", "/health/liveliness", None),
        "props": ("GET", "/props", None),
        "model info": ("GET", "/v1/model/info", None),
        **common(V1),
        "server behind it gone": ("POST", "/v1/chat/completions", chat("nowhere")),
        "wrong key": ("GET", "/v1/models", None),
    },
}
