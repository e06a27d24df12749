"""llama-server with one model: every way to split its slots, a key, a prefix, TLS."""

import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.llama_process import free_port

KEY = "sk-llama-server"
# One thread for each: two cores are shared by all that runs here.
COMMON = ("--host", "127.0.0.1", "-t", "1", "-tb", "1", "--no-warmup", "--offline")


def llama_server(
    folder: Path,
    *flags: str,
    name: str = "llama-server",
    port: int = 0,
    prefix: str = "",
    tls: ssl.SSLContext | None = None,
) -> tuple[ProgramProcess, str]:
    """A llama-server that is not started yet, and its root."""
    port = port or free_port()
    scheme = "https" if tls else "http"
    root = f"{scheme}://127.0.0.1:{port}{prefix}"
    process = ProgramProcess(
        [command("llama-server"), "--port", str(port), *COMMON, *flags],
        ready_url=f"{root}/health",
        folder=folder,
        name=name,
        tls=tls,
    )
    return process, root


def chat_server(
    folder: Path, models: ModelFiles, *flags: str, name: str = "llama-server", model: str = "alpha"
) -> tuple[ProgramProcess, str]:
    return llama_server(folder, "-m", str(models.path(model)), "--alias", model, *flags, name=name)


def embedding_server(folder: Path, models: ModelFiles, *flags: str) -> tuple[ProgramProcess, str]:
    arguments = ("-m", str(models.embeddings), "--alias", "embed", "--embeddings")
    return llama_server(
        folder, *arguments, "-np", "2", "-c", "4096", "-ub", "2048", *flags, name="embeddings"
    )


def _single(name: str, flags: Sequence[str], *, key: str = KEY, **known: Any) -> Stack:
    @contextmanager
    def opened(folder: Path, models: ModelFiles) -> Iterator[Backend]:
        keyed = ("--api-key", key) if key else ()
        process, root = chat_server(folder, models, *flags, *keyed)
        port = int(root.rsplit(":", 1)[1])
        with process, Relay(port) as relay:
            yield Backend(
                name,
                "llama-server",
                f"{root}/v1",
                key,
                knows_models=False,
                relay=relay,
                serving=[ServingProcess(root, key)],
                victim=process,
                **known,
            )

    return Stack(name, ("llama-server",), opened)


@contextmanager
def _behind_a_prefix(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    flags = ("--alias", "alpha", "-c", "4096", "--no-slots", "--api-prefix", "/llm")
    process, root = llama_server(
        folder, "-m", str(models.path("alpha")), *flags, "--api-key", KEY, prefix="/llm"
    )
    port = int(root.rsplit(":", 1)[1].split("/")[0])
    with process, Relay(port) as relay:
        yield Backend(
            "-np not given, --api-prefix, --no-slots",
            "llama-server",
            f"{root}/v1",
            KEY,
            knows_models=False,
            slots=4,
            context=4096,
            forgotten=(f"http://127.0.0.1:{port}/v1", "Is a part of the address missing?"),
            relay=relay,
            victim=process,
        )


@contextmanager
def _over_tls(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    ca, certificate, key = write_certificates(folder)
    tls = ssl.create_default_context(cafile=str(ca))
    files = ("--ssl-key-file", str(key), "--ssl-cert-file", str(certificate))
    process, root = llama_server(
        folder,
        *("-m", str(models.path("alpha")), "--alias", "alpha", "-np", "2", "-c", "8192"),
        *("--metrics", "--api-key", KEY),
        *files,
        tls=tls,
    )
    with process:
        yield Backend(
            "https, own CA",
            "llama-server",
            f"{root}/v1",
            KEY,
            knows_models=False,
            slots=2,
            context=4096,
            unified=False,
            serving=[ServingProcess(root, KEY, tls=tls)],
            victim=process,
            ca_file=str(ca),
        )


@contextmanager
def _embeddings(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    process, root = embedding_server(folder, models, "--api-key", KEY)
    port = int(root.rsplit(":", 1)[1])
    with process, Relay(port) as relay:
        yield Backend(
            "--embeddings",
            "llama-server",
            f"{root}/v1",
            KEY,
            chat="",
            embeddings="embed",
            knows_models=False,
            slots=2,
            context=2048,
            unified=False,
            relay=relay,
            victim=process,
        )


def write_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A CA of our own and a certificate of 127.0.0.1 by it: ca, certificate, key."""
    ca, ca_key, key = folder / "ca.pem", folder / "ca.key", folder / "server.key"
    request, certificate = folder / "server.csr", folder / "server.pem"
    names = folder / "names.cnf"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    new = ("-newkey", "rsa:2048", "-nodes")
    day = ("-days", "2")
    for arguments in (
        (
            "req",
            "-x509",
            *new,
            "-keyout",
            str(ca_key),
            "-out",
            str(ca),
            *day,
            "-subj",
            "/CN=Own CA",
        ),
        ("req", *new, "-keyout", str(key), "-out", str(request), "-subj", "/CN=127.0.0.1"),
        (
            *("x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key)),
            *("-CAcreateserial", "-out", str(certificate), *day, "-extfile", str(names)),
        ),
    ):
        subprocess.run([command("openssl"), *arguments], check=True, capture_output=True)
    return ca, certificate, key


STACKS = (
    _single(
        "-np 1, no key",
        ("-np", "1", "-c", "4096"),
        key="",
        slots=1,
        context=4096,
        unified=False,
    ),
    _single(
        "-np 2 --kv-unified",
        ("-np", "2", "--kv-unified", "-c", "8192"),
        slots=2,
        context=8192,
        unified=False,  # no route says otherwise: until requests have outgrown it
    ),
    _single(
        "-np 4 --metrics",
        ("-np", "4", "-c", "16384", "--metrics"),
        slots=4,
        context=4096,
    ),
    Stack("-np not given, --api-prefix, --no-slots", ("llama-server",), _behind_a_prefix),
    Stack("https, own CA", ("llama-server", "openssl"), _over_tls),
    Stack("--embeddings", ("llama-server",), _embeddings),
)
