"""Servers and proxies that cannot be had for a test, each answering as the real one does.

    with Standin("llama-swap", llama, models=[Model("chat"), Model("judge", slots=2)]) as swap:
        Server(base_url=swap.base_url) ...
        assert swap.loads == []          # nothing that refreshed has loaded a model

Kinds: "router" (llama-server's), "llama-swap", "olla", "litellm", "strict" (OpenAI's own),
"saturating" (answers itself, at a given pace). What the others generate or embed is forwarded to a
real llama.cpp, byte by byte, and closed there when the client goes. Each runs in a child process.
Everything can be set at the start and changed while it runs (`change`):

    models              what it names, see `Model`
    models_at_once      how many are in memory together (router 4, llama-swap 1); the least recently
                        used one is stopped when it is idle, as both do
    load_seconds        how long a load takes
    concurrency_limit   llama-swap: requests per model, waiting ones included; beyond it 429
    rate_per_minute, burst   Olla: per address; beyond it 429 with Retry-After
    header_seconds      Olla: how long it waits for the first byte; then 502
    api_key             the key it asks for; "" none
    dialect             strict: how it refuses fields that it does not know
    tokens_per_second   saturating: of one request
    is_uneven           saturating: answers differ in length
    reports_usage       saturating: whether its answers end with their tokens
    outage              saturating: the status of a proxy whose server is away
    refuses_above       saturating: requests at once; beyond it 429

What it did: `asked` (every request: method, path, query, model, status), `loads` (model and the
path that loaded it, in order), `most` (most requests in flight, by model), `states`.
"""

from tests.standins.process import Standin
from tests.standins.state import Model

__all__ = ["Model", "Standin"]
