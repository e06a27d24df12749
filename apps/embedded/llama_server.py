"""llama.cpp's own server as a child process: ``python -m apps.embedded.llama_server --model ...``

It serves on 127.0.0.1 until SIGTERM, SIGINT or the end of its parent process. It is a separate
process because llama.cpp aborts on a failed assertion, which Python cannot catch.
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

# Threads that wait by spinning take the cores that other work needs: during a training run the
# embedding speed was 5 texts a second with spinning threads and 25 with sleeping ones. On an idle
# machine both are equally fast. OpenMP reads this variable while the next import loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import xllamacpp

GGUF_MAGIC = b"GGUF"
CHAT_BATCH = 2048  # tokens, llama.cpp's own default
CHAT_UBATCH = 512  # tokens, llama.cpp's own default
EMBEDDING_UBATCH = 2048  # tokens
# Prompts of conversations that lost their slot. llama.cpp's default of 8192 MiB could be all the
# memory of the machine.
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
    parser.add_argument("--slot-save-path", type=Path, help="folder for the caches of slots")
    parser.add_argument("--metrics", action="store_true", help="answer /metrics")
    return parser.parse_args(argv)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: a container may be held to a few of the cores
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_model(path: Path) -> None:
    """Check the file first: llama.cpp would report a bad one in ten lines.

    Raises:
        StartError: the file is unreadable, not GGUF, or incomplete.
    """
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
    # Each slot has its own KV cache: when a shared one overflows, every request fails. Embeddings
    # share one nevertheless: with split caches llama.cpp cuts texts of unequal length into batches
    # of equal length, and the mean of a causal model is then that of the last part alone.
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
        # With llama.cpp's 0.1 a conversation takes the slot of any other with the same system
        # prompt, and a long one is processed again: 4,000 tokens instead of 37.
        params.slot_prompt_similarity = 0.5
    if args.slot_save_path:
        params.slot_save_path = f"{args.slot_save_path}/"  # file names are appended as they are
    params.endpoint_metrics = args.metrics
    params.ui = False
    params.verbosity = 1  # errors only: ordinary requests log warnings, and six notes each
    return params


def serve_until_stopped(server: xllamacpp.Server, parent: int) -> None:
    """Wait for a signal or the end of the parent; the server has its own threads."""
    stop = threading.Event()

    def request_stop(signum: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    # Linux can signal the end of the parent, but already when the thread that started us ends.
    while not stop.wait(PARENT_CHECK_SECONDS):
        if os.getppid() != parent:
            return


def main() -> int:
    parent = os.getppid()
    # Python's signal handlers do not run while the model loads, and there is nothing to clean up.
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
                " its lines, before or after this one, say why."  # another thread writes them
            ) from error
    except StartError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    serve_until_stopped(server, parent)
    # Deleting the server waits for open answers, and an answer that no client reads never ends.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
