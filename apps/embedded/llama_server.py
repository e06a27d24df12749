"""llama.cpp's own server as a process of ours: ``python -m apps.embedded.llama_server --model ...``

It answers on 127.0.0.1 until SIGTERM or SIGINT, or until the process that started it is gone. It
is a process of its own because llama.cpp aborts on a failed assertion, which nothing can catch.
"""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from apps.embedded.errors import StartError
from apps.embedded.model_files.gguf_size import CUT_OFF, is_cut_off

# Threads that wait for each other by spinning take the core the other one needs as soon as anything
# else runs: beside a training run, embedding fell to 5 texts a second, and to 25 when they sleep.
# Alone on the machine both are equally fast. OpenMP reads this while the next import loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import xllamacpp

GGUF_MAGIC = b"GGUF"
CHAT_BATCH = 2048  # tokens, llama.cpp's own default
CHAT_UBATCH = 512  # tokens, llama.cpp's own default
EMBEDDING_UBATCH = 2048  # tokens
# Prompts kept for conversations that lost their slot. llama.cpp's default of 8192 MiB could be all
# the memory of the machine this model shares with the workbench.
PROMPT_CACHE_MIB = 1024
PARENT_CHECK_SECONDS = 1.0


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m apps.embedded.llama_server")
    parser.add_argument("--model", type=Path, required=True, help="GGUF file")
    parser.add_argument("--port", type=int, required=True, help="0 picks a free port")
    parser.add_argument(
        "--api-key-file",
        type=Path,
        required=True,
        help="file with the key; a command line could be read by every user of the machine",
    )
    parser.add_argument("--mmproj", type=Path, help="GGUF file of the vision projector (mmproj)")
    parser.add_argument("--alias", default="", help="model name the API shows")
    parser.add_argument("--parallel", type=int, default=4, help="slots: parallel requests")
    parser.add_argument("--context-per-slot", type=int, default=2048, help="tokens")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--embeddings", action="store_true", help="embed, do not generate")
    parser.add_argument("--ubatch", type=int, help="tokens computed at once")
    parser.add_argument("--metrics", action="store_true", help="answer /metrics")
    return parser.parse_args(argv)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: a container may be held to a few of the cores
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_model(path: Path) -> None:
    """Refuse what cannot be a model before llama.cpp sees it and answers in ten lines."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise StartError(f"The model file {path} cannot be read: {error.strerror}.") from error
    if magic != GGUF_MAGIC:
        raise StartError(f"The model file {path} is not a GGUF file.")
    if is_cut_off(path):
        raise StartError(f"The model file {path} {CUT_OFF}")


def read_key(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"The API key file {path} cannot be read: {error}.") from error
    if not key:
        raise StartError(f"The API key file {path} is empty.")
    return key


def server_params(args: argparse.Namespace, key: str) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(args.model)
    if args.mmproj:
        params.mmproj.path = str(args.mmproj)
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.api_keys = [key]
    if args.alias:
        params.model_alias = {args.alias}
    params.n_parallel = args.parallel
    # Each slot owns its share: a pool shared by all slots fails every request when it overflows.
    # Embeddings share one all the same: with split caches llama.cpp cuts texts of unequal length
    # into batches of equal length, and a causal model's mean is then taken of the last cut alone.
    params.kv_unified = args.embeddings
    params.n_ctx = args.parallel * args.context_per_slot
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    params.embedding = args.embeddings
    if args.embeddings:
        # A BERT-like model cannot split a text: one that exceeds the ubatch is refused.
        params.n_ubatch = args.ubatch or EMBEDDING_UBATCH
        params.n_batch = params.n_ubatch
        params.cache_ram_mib = 0
    else:
        params.n_ubatch = args.ubatch or CHAT_UBATCH
        params.n_batch = max(CHAT_BATCH, params.n_ubatch)
        params.cache_ram_mib = PROMPT_CACHE_MIB
        # With llama.cpp's 0.1 a conversation takes over the slot of any other with the same system
        # prompt, and a long one is then read anew: 4,000 tokens were, where 37 would do.
        params.slot_prompt_similarity = 0.5
    params.endpoint_metrics = args.metrics
    params.ui = False
    params.verbosity = 1  # errors; warnings come with ordinary requests, notes six to each of them
    return params


def serve_until_stopped(server: xllamacpp.Server, parent: int) -> None:
    """Wait for a signal or for the parent's death; the server answers in threads of its own."""
    stop = threading.Event()

    def request_stop(signum: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    # Linux could signal the parent's death, but does it when the thread that started us ends.
    while not stop.wait(PARENT_CHECK_SECONDS):
        if os.getppid() != parent:
            return


def main() -> int:
    parent = os.getppid()
    # Loading blocks Python's handlers for as long as it takes; there is nothing to clean up yet.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    args = parse_args()
    try:
        check_model(args.model)
        params = server_params(args, read_key(args.api_key_file))
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise StartError(
                f"llama.cpp could not load {args.model} or listen on port {args.port}:"
                " its lines, before or after this one, say why."  # a thread of its own writes them
            ) from error
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    serve_until_stopped(server, parent)
    # Deleting the server would first wait for its open answers, and one that nobody reads never
    # ends. There is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
