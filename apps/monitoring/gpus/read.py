"""The GPUs of a server's machine, wherever something there reports them."""

import asyncio
import ipaddress
from urllib.parse import urlsplit

from apps.monitoring.gpus import llama_swap, nvml
from apps.monitoring.gpus.reading import GpuReading
from apps.servers.models import Kind, Server
from apps.servers.services import Target
from apps.tuning.machine_hooks import Gpu


async def read_gpus(server: Server) -> list[GpuReading]:
    """Return a reading of each GPU of the server's machine; []: not reported."""
    if server.kind == Kind.LLAMA_SWAP and (
        found := await llama_swap.read(Target(server, "").client)
    ):
        return found
    if is_local(server.base_url):
        return await asyncio.to_thread(nvml.read)
    return []


async def read_named_gpus(server: Server) -> list[Gpu]:
    """Return the name and memory of each GPU of the server's machine; []: not reported."""
    return [Gpu(gpu.name, gpu.memory_total) for gpu in await read_gpus(server)]


def is_local(url: str) -> bool:
    """True if the address is on this machine's loopback."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
