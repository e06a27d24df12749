"""Records what the programs reply to each request that we send.

`python -m tests.backends.recording.record` writes one JSON file a program, without what differs
from run to run. The stand-ins are held against them (`test_standins`).
"""

import json
import re
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import tests.environment  # noqa: F401
from tests.backends.backend import Backend
from tests.backends.model_files import write_models
from tests.backends.programs import version
from tests.backends.recording.requests import REQUESTS
from tests.backends.stacks import all_stacks, litellm, llama_swaps, ollas, routers

RECORDINGS = Path(__file__).parents[1] / "recordings"
STACKS = {
    "router": (routers.PRESETS, "llama-server"),
    "llama-swap": (llama_swaps.GROUP, "llama-swap"),
    "olla": (ollas.NAME, "olla"),
    "litellm": (litellm.NAME, "litellm"),
}
KEPT_CHARACTERS = 400  # of a text
KEPT_ENTRIES = 8  # of a list
EPOCH = 1_600_000_000


def send(root: str, key: str, method: str, path: str, body: Any) -> dict[str, Any]:
    """Send one request and return its status, type and decoded body."""
    request = urllib.request.Request(
        root + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    try:
        response = urllib.request.urlopen(request, timeout=120)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        text = response.read().decode(errors="replace")
        kind = response.headers.get("content-type", "").split(";")[0]
        return {"status": response.status, "type": kind, "body": decoded(kind, text)}


def decoded(kind: str, text: str) -> Any:
    """A JSON body, the chunks of a stream, or a text, without paths and ports."""
    if kind == "text/event-stream":
        chunks = [line.removeprefix("data: ") for line in text.splitlines() if line[:5] == "data:"]
        return [json.loads(chunk) if chunk[0] == "{" else chunk for chunk in chunks]
    try:
        return json.loads(text)
    except ValueError:
        return text


def cleaned(value: Any) -> Any:
    """`value` without what the machine and the moment put into it."""
    if isinstance(value, dict):
        told = {name: one for name, one in value.items() if one is not None}
        return {name: cleaned(one) for name, one in told.items() if name != "litellm_params"}
    if isinstance(value, list):
        return [cleaned(one) for one in value[:KEPT_ENTRIES]]
    if isinstance(value, int) and value > EPOCH:
        return EPOCH
    if isinstance(value, str):
        value = re.sub(r"/[\w./-]*/(?=[\w-]+\.gguf|llama-server)", "/models/", value)
        value = re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:1", value)
        value = re.sub(r"(--port[ =]|\"--port\", \")\d+", r"\g<1>1", value)
        return re.sub(r"sk-[\w-]+", "sk-key", value)[:KEPT_CHARACTERS]
    return value


def record(kind: str, backend: Backend) -> dict[str, Any]:
    root, found = backend.base_url.removesuffix("/v1").removesuffix("/olla/openai"), {}
    for name, (method, path, body) in REQUESTS[kind].items():
        key = "sk-wrong" if "wrong key" in name else backend.api_key
        reply = send(root, key, method, path, body)
        found[name] = {"request": [method, path], **cleaned(reply)}
    return found


def main() -> None:
    wanted = sys.argv[1:] or list(STACKS)
    RECORDINGS.mkdir(exist_ok=True)
    for kind in wanted:
        stack, program = STACKS[kind]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            models = write_models(folder)
            with all_stacks()[stack].open(folder, models) as backend:
                replies = record(kind, backend)
        file = RECORDINGS / f"{kind}.json"
        told = {"program": f"{program} {version(program)}".strip(), "replies": replies}
        file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{file}: {len(replies)} replies\n")


if __name__ == "__main__":
    main()
