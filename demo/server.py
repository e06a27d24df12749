"""The real llama.cpp server from the xllamacpp wheel, in a child process, for the checks here."""

from __future__ import annotations

import json
import multiprocessing
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


def serve(path: str, slots: int, pipe: Connection) -> None:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = path
    params.port = 0
    params.verbosity = -1
    params.n_ctx = 2048 * slots
    params.n_parallel = slots
    params.cpuparams.n_threads = 1
    server = Server(params)
    pipe.send(server.listening_address)
    pipe.recv()  # until the other side hangs up


@contextmanager
def llama_server(path: Path, slots: int = 1) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=serve, args=(str(path), slots, there), daemon=True)
    child.start()
    try:
        yield here.recv()
    finally:
        child.terminate()
        child.join()


def post(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer
