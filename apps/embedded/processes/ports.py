"""TCP ports of this machine."""

import errno
import socket

from apps.embedded.errors import StartError

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a free loopback port; the kernel does not give it to others for a while."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def check_port(host: str, port: int) -> None:
    """Check that the web server can listen on this address.

    Raises:
        StartError: the port is not valid, in use or reserved, or the host is unknown.
    """
    if not 0 < port < 65536:
        raise StartError(f"WORKBENCH_PORT must be between 1 and 65535, not {port}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the server does: connections closed a moment ago do not count as in use.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise StartError(_port_error(host, port, error)) from error


def _port_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use. Stop the other program,"
            f" or choose another port, e.g. WORKBENCH_PORT={port % 65535 + 1}."
        )
    if error.errno == errno.EACCES:
        return (
            f"Port {port} is reserved for the system. Choose a port above 1023 with WORKBENCH_PORT."
        )
    return f"Workbench cannot listen on {host}:{port} (WORKBENCH_HOST): {error.strerror}."
