"""The kinds and states of servers, and the uses that have a default server."""

from django.db import models


class Kind(models.TextChoices):
    LLAMA_SERVER = "llama-server", "llama-server"
    ROUTER = "router", "llama-server router"
    LLAMA_SWAP = "llama-swap", "llama-swap"
    OLLA = "olla", "Olla"
    LITELLM = "litellm", "LiteLLM"
    OPENAI = "openai", "OpenAI-compatible"


class State(models.TextChoices):
    READY = "ready"
    LOADING = "loading"
    UNREACHABLE = "unreachable", "Offline"
    UNAUTHORIZED = "unauthorized", "Key rejected"
    UNKNOWN = "unknown", "Not checked"
    STUCK = "stuck"
    """Reports ready and returns no token. Shown, never stored: see `apps.servers.liveness`."""


class Use(models.TextChoices):
    """A purpose of requests. Each use has one default server and model."""

    CHAT = "chat"
    EMBEDDINGS = "embeddings"
    GENERATION = "generation"
