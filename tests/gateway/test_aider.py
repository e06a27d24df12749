"""aider, unmodified, edits a file of a scratch repository through the gateway.

It lives in an environment of its own: `python -m venv VENV; VENV/bin/pip install aider-chat`, and
WORKBENCH_TEST_AIDER=VENV/bin/aider. A stand-in writes what a model would.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from apps.gateway.models import Usage
from apps.gateway.usage.store import store_usage
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.gateway.test_bytes import Recorder, odd, recorder

__all__ = ["odd", "recorder"]
AIDER = os.environ.get("WORKBENCH_TEST_AIDER", "")
SECONDS = 90
EDIT = """I greet the world.

hello.py
```python
<<<<<<< SEARCH
print("hello")
=======
print("hello, world")
>>>>>>> REPLACE
```
"""
OPTIONS = (
    *("--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings"),
    *("--no-show-release-notes", "--no-gitignore", "--edit-format", "diff", "--map-tokens", "0"),
    *("--no-pretty", "--no-fancy-input"),
)
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not AIDER, reason="WORKBENCH_TEST_AIDER names no program"),
    pytest.mark.usefixtures("no_counters"),
    pytest.mark.timeout(2 * SECONDS),
]


def events_of(text: str) -> bytes:
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": 700, "completion_tokens": 50, "total_tokens": 750}
    chunks.append({"choices": [], "usage": usage})
    same = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "odd"}
    lines = [f"data: {json.dumps({**same, **chunk})}\n\n" for chunk in chunks]
    return ("".join(lines) + "data: [DONE]\n\n").encode()


def answer_of(text: str) -> bytes:
    usage = {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95}
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    same = {"id": "c", "object": "chat.completion", "created": 1, "model": "odd"}
    return json.dumps({**same, "choices": choices, "usage": usage}).encode()


@pytest.fixture
def writes(recorder: type[Recorder], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server streams the edit, and names the commit when it is asked without a stream."""

    def answer(self: Recorder) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_stream = bool(asked.get("stream"))
        body = events_of(EDIT) if is_stream else answer_of("feat: Greet the world")
        self.send_response(200)
        kind = "text/event-stream" if is_stream else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    monkeypatch.setattr(recorder, "do_POST", answer)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "hello.py").write_text('print("hello")\n')
    for command in (
        ["init", "-q"],
        ["config", "user.name", "Alice"],
        ["config", "user.email", "alice@example.org"],
        ["add", "hello.py"],
        ["commit", "-qm", "Say hello"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


async def test_aider_edits_a_file(
    root: str, token: str, odd: Server, writes: None, repository: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        AIDER,
        *("--model", "openai/odd", "--message", "Greet the world.", *OPTIONS, "hello.py"),
        cwd=repository,
        env={
            **{"PATH": os.environ["PATH"], "HOME": str(repository), "TERM": "dumb"},
            **{"OPENAI_API_BASE": f"{root}/v1", "OPENAI_API_KEY": token},
            "HTTPS_PROXY": "http://127.0.0.1:9",  # it asks GitHub for prices of models
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    loop = asyncio.get_running_loop()
    late = loop.call_later(SECONDS, process.kill)
    said, _ = await process.communicate()
    late.cancel()
    assert (repository / "hello.py").read_text() == 'print("hello, world")\n', said.decode()[-3000:]
    log = subprocess.run(["git", "log", "--oneline"], cwd=repository, check=True, stdout=-1).stdout
    assert b"feat: Greet the world" in log  # aider commits what it did
    await in_db(store_usage)
    used = await Usage.objects.aget()
    assert (used.requests, used.prompt, used.failed) == (2, 790, 0)
