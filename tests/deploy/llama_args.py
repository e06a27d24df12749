"""llama-server's own reading of a command line: ``python -m tests.deploy.llama_args [ARG...]``

PyPI's xllamacpp carries llama.cpp's argument parser without a way to call it from Python, so it is
called by its C++ name, on the memory of a CommonParams object. That is as fragile as it sounds:
always in a process of its own, and `understood` says so when a newer wheel has moved things.

Prints what was understood as JSON. With LLAMA_ARGS_SERVE set, the server then runs until its
standard input ends.
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
PYTHON_OBJECT_HEAD = 16  # bytes before the C++ struct in a CommonParams object
# llama.cpp numbers its programs; the server is the one that knows this flag.
ONLY_THE_SERVER_KNOWS = ["--slot-save-path", "/"]
PROGRAMS = range(24)
SHOWN = (
    *("n_ctx", "n_batch", "n_ubatch", "n_parallel", "kv_unified", "embedding", "api_keys"),
    *("slot_prompt_similarity", "cache_ram_mib", "endpoint_metrics", "hostnames", "port"),
    *("n_gpu_layers", "cache_type_k", "cache_type_v"),
)
UNUSABLE = 3


def understood(argv: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    """What llama-server makes of its arguments.

    Raises:
        ValueError: it refuses them; the message is its own.
        LookupError: this wheel's parser cannot be called.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.llama_args", *argv],
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=180,
    )
    if done.returncode == 0:
        params = json.loads(done.stdout)
        assert isinstance(params, dict)
        return params
    if done.returncode == 1:
        raise ValueError(done.stderr)
    raise LookupError(f"this xllamacpp's parser cannot be called: {done.stderr[-500:]}")


def parse(argv: list[str]) -> Any:
    """A CommonParams, or None where llama.cpp refused and has said why on standard error."""
    from xllamacpp import xllamacpp

    function = getattr(ctypes.CDLL(xllamacpp.__file__), PARSE)
    function.restype = ctypes.c_bool

    def call(params: Any, arguments: list[str], program: int) -> bool:
        words = [b"llama-server", *(argument.encode() for argument in arguments)]
        return bool(
            function(
                ctypes.c_int(len(words)),
                (ctypes.c_char_p * (len(words) + 1))(*words, None),
                ctypes.c_void_p(id(params) + PYTHON_OBJECT_HEAD),
                ctypes.c_int(program),
                None,
            )
        )

    probe = xllamacpp.CommonParams()
    with silence():
        server = next(p for p in PROGRAMS if call(probe, ONLY_THE_SERVER_KNOWS, p))
        assert call(probe, ["--ctx-size", "4321"], server)
        assert probe.n_ctx == 4321  # the struct is where it was looked for
    params = xllamacpp.CommonParams()
    return params if call(params, argv, server) else None


@contextmanager
def silence() -> Iterator[None]:
    """The programs that are not the server say so, below Python's own streams."""
    stderr = os.dup(2)
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def main() -> int:
    try:
        params = parse(sys.argv[1:])
    except (ImportError, OSError, AttributeError, AssertionError, StopIteration) as error:
        sys.stderr.write(repr(error))
        return UNUSABLE
    if params is None:
        return 1
    shown = {name: getattr(params, name) for name in SHOWN} | {"model": params.model.path}
    sys.stdout.write(json.dumps(shown, default=str) + "\n")
    sys.stdout.flush()
    if os.environ.get("LLAMA_ARGS_SERVE"):
        import xllamacpp

        server = xllamacpp.Server(params)
        sys.stdin.read()
        assert server
        os._exit(0)  # deleting it would wait for open answers
    return 0


if __name__ == "__main__":
    sys.exit(main())
