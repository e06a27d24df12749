"""A real llama-server whose slots share one KV cache, as they do when -np is not given."""

import sys
from typing import Any

from apps.embedded import llama_server
from tests.llama_process import LlamaProcess

SHARED_TOKENS = 512


class SharedCacheLlama(LlamaProcess):
    """Four slots, of which each reports the whole cache: 512 tokens."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, parallel=4, context_per_slot=SHARED_TOKENS, **kwargs)
        self.command[2] = "tests.servers.shared_cache"


def _shared(*args: Any) -> Any:
    params = _split(*args)
    params.kv_unified, params.n_ctx = True, SHARED_TOKENS
    return params


if __name__ == "__main__":
    _split, llama_server.server_params = llama_server.server_params, _shared
    sys.exit(llama_server.main())
