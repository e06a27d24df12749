"""``python -m tests.standins KIND PORT CONFIG``, the configuration as JSON."""

import json
import sys

import uvicorn

from tests.standins.llama_swap import LlamaSwap
from tests.standins.proxies import LiteLLM, Olla
from tests.standins.router import Router
from tests.standins.saturating import Saturating
from tests.standins.state import Config
from tests.standins.strict import Strict
from tests.standins.web import App

KINDS: dict[str, type[App]] = {
    "router": Router,
    "llama-swap": LlamaSwap,
    "olla": Olla,
    "litellm": LiteLLM,
    "strict": Strict,
    "saturating": Saturating,
}

if __name__ == "__main__":
    kind, port, config = sys.argv[1:]
    uvicorn.run(
        KINDS[kind](Config.of(json.loads(config))),
        host="127.0.0.1",
        port=int(port),
        log_level="error",
        lifespan="off",
        timeout_keep_alive=60,
    )
