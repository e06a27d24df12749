"""A stand-in for llama-server to be killed: python -m tests.faults.model_server PORT LOG SLOTS

It writes what it is asked for at its own pace, costs next to no CPU, and notes in LOG, one line
each, when an answer begins, ends and is cut off: `BEGIN seed in_flight`. A line is written before
the client can know of confidence, so the log is the truth whoever is killed. An answer is a
function of the row's seed: `answer_of` says which.

Where `most_of(LOG)` is, no more answers end than it says, those of an earlier process
included. Others wait with their end.
"""

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from tests.waiting import until

PIECES = 10
SECONDS = (0.05, 0.35)  # of an answer: rows are uneven
BEGIN, END, CUT = "BEGIN", "END", "CUT"
MODEL = "stand-in"


def most_of(log: Path) -> Path:
    """The file that says how many answers may end."""
    return log.with_suffix(".most")


def answer_of(seed: int) -> str:
    return "".join(f"{seed + at} " for at in range(PIECES)).strip()


def _chunk(**fields: Any) -> bytes:
    body = json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", **fields})
    data = f"data: {body}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _choice(delta: dict[str, str], reason: str | None = None) -> bytes:
    return _chunk(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])


class StandIn:
    def __init__(self, path: Path, slots: int) -> None:
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._most = most_of(path)
        self._ended = path.read_text().count(END)
        self._now = 0
        self._routes: dict[str, Any] = {
            "/v1/models": {"object": "list", "data": [{"id": MODEL, "owned_by": "llamacpp"}]},
            "/props": {"total_slots": slots, "default_generation_settings": {"n_ctx": 4096}},
            "/health": {"status": "ok"},
        }

    def _may_end(self) -> bool:
        return not self._most.exists() or self._ended < float(self._most.read_text())

    def _note(self, what: str, seed: int) -> None:
        os.write(self._log, f"{what} {seed} {self._now}\n".encode())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                _, path, _ = head[0].split(" ")
                sizes = [line for line in head if line.lower().startswith("content-length:")]
                size = int(sizes[0].split(":")[1]) if sizes else 0
                body = await reader.readexactly(size)
                if path.endswith("/chat/completions"):
                    await self._answer(json.loads(body), writer)
                else:
                    self._say(writer, self._routes.get(path))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _say(self, writer: asyncio.StreamWriter, said: Any) -> None:
        status = "404 Not Found" if said is None else "200 OK"
        body = json.dumps(said or {}).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        seed = int(asked.get("seed", 0))  # a check of the model has none
        self._now += 1
        self._note(BEGIN, seed)
        is_whole = False
        try:
            is_whole = await self._write_text(seed, writer, is_streamed=asked.get("stream") is True)
        finally:
            self._now -= 1
            self._note(END if is_whole else CUT, seed)
        usage = {"prompt_tokens": 20, "completion_tokens": PIECES}
        if not is_whole:
            return
        if asked.get("stream"):
            writer.write(_choice({}, "stop") + _chunk(choices=[], usage=usage) + b"0\r\n\r\n")
            return
        message = {"role": "assistant", "content": answer_of(seed)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._say(writer, {"object": "chat.completion", "choices": [choice], "usage": usage})

    async def _write_text(
        self, seed: int, writer: asyncio.StreamWriter, *, is_streamed: bool
    ) -> bool:
        """Take as long as a model; return False if the client left meanwhile."""
        if is_streamed:
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        pause = random.Random(seed).uniform(*SECONDS) / PIECES
        for piece in answer_of(seed).split(" "):
            if is_streamed:
                writer.write(_choice({"content": f"{piece} "}))
            await asyncio.sleep(pause)  # as long as a model takes for it
            if writer.transport.is_closing():
                return False
        await until(lambda: self._may_end() or writer.transport.is_closing(), within=600)
        if writer.transport.is_closing():
            return False
        self._ended += 1
        return True


async def main(port: int, path: Path, slots: int) -> None:
    server = await asyncio.start_server(StandIn(path, slots).serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
