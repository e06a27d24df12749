"""What the gateway adds to a program's request, beside the other ways to a model server.

The same requests of OpenAI's API go to one stand-in directly and through each side, in alternating
rounds of one run: 1, 8 and 32 programs at a time. `ours` is the workbench's /v1 with a permit for
each request; `relay` is bench/byte_relay.py, the least a Django application can do; `llama-swap`
and `olla` are there where their programs are on the PATH (bench/gateway/proxies.py); `litellm`
needs --litellm. The stand-in writes one token every 20 ms; at the end as fast as it is read.

Run: `.venv/bin/python -m bench.gateway [--rounds 5] [--litellm VENV]`. Nothing else should run.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from bench.chat.stream import (
    HEAD,
    KEY,
    Completions,
    Side,
    byte_relay,
    litellm,
    paced_server,
    report,
    report_ceiling,
)
from bench.gateway.proxies import proxies
from tests.stack import Stack


@contextmanager
def gateway(base_url: str) -> Iterator[Side]:
    """The workbench, whose server was asked once what it is."""
    servers = {"LLM_BASE_URL": base_url, "EMBED_BASE_URL": base_url, "LLM_API_KEY": KEY}
    with Stack(servers | {"WORKBENCH_TITLES": "false"}) as stack:
        key = stack.manage("create_api_key", "bench").strip()
        (web, *_) = stack.processes("uvicorn")
        base = f"{stack.url}/v1"
        listed = httpx2.get(f"{base}/models", headers={"authorization": f"Bearer {key}"}).json()
        assert listed["data"], "the workbench sees no model"
        yield Side("ours", Completions(base), key, web)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--litellm", type=Path, metavar="VENV")
    options = parser.parse_args()
    with ExitStack() as stack:
        base_url = stack.enter_context(paced_server())
        sides = [Side("direct", Completions(base_url), KEY)]
        sides.append(stack.enter_context(gateway(base_url)))
        sides.append(stack.enter_context(byte_relay(base_url)))
        sides += stack.enter_context(proxies(base_url))
        if options.litellm:
            sides.append(stack.enter_context(litellm(options.litellm, base_url)))
        print(HEAD)
        report(sides, name="paced", model="paced", rounds=options.rounds)
        report_ceiling(sides, options.rounds)


if __name__ == "__main__":
    main()
