"""Reads the first megabytes of a model on Hugging Face: `owner/repo:file.gguf`.

Nothing is kept. Hugging Face redirects to its storage: each address is checked again.
"""

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import quote

import httpx2

from apps.core.outgoing import Limits, OutgoingError, guarded_client
from apps.tuning.errors import PlanError
from apps.tuning.planner.model.gguf_header import HEADER_BYTES, read_header
from apps.tuning.planner.model.model_shape import ModelShape, read_shape

HUB = "https://huggingface.co"
STEP_BYTES = 8 * 1024**2
"""Asked for at once; most headers are shorter."""
MAX_REDIRECTS = 3
SECONDS = 60
_NAME = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}):(?P<file>[\w.+/-]{1,255}\.gguf)"
)
_RANGE = re.compile(r"bytes \d+-\d+/(\d+)")


@dataclass(frozen=True, slots=True)
class HubFile:
    repo: str
    path: str

    @property
    def url_path(self) -> str:
        return f"/{self.repo}/resolve/main/{quote(self.path)}"


def find_hub_file(text: str) -> HubFile | None:
    """Return the file that `owner/repo:file.gguf` names; None: it names none, but maybe a path."""
    found = _NAME.fullmatch(text)
    if found is None or ".." in text:
        return None
    return HubFile(found["repo"], found["file"])


async def read_hub_shape(
    file: HubFile, *, hub: str = HUB, allow_private: bool = False
) -> ModelShape:
    """Fetch as much of the file as its header needs, up to 32 MiB.

    Raises:
        PlanError: there is no network, no such file, or it is no model.
    """
    limits = Limits(10, 30, max_bytes=STEP_BYTES)
    try:
        async with (
            asyncio.timeout(SECONDS),
            guarded_client(limits, allow_private=allow_private) as client,
        ):
            return await _read(client, hub + file.url_path)
    except OutgoingError as error:
        raise PlanError(f"{file.path} cannot be fetched: {error}") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise PlanError(
            f"{file.path} cannot be fetched: {reason}. Download it, and name the file."
        ) from error


async def _read(client: httpx2.AsyncClient, url: str) -> ModelShape:
    data, size = b"", STEP_BYTES
    header = None
    while len(data) < min(size, HEADER_BYTES):
        piece, size = await _fetch(client, url, len(data))
        data += piece
        header = read_header(data)
        if header.complete or not piece:
            break
    if header is None:
        raise PlanError("The file is empty.")
    parts = header.values.get("split.count", 1)
    return read_shape(header, file_bytes=size if parts in {0, 1} else None)


async def _fetch(client: httpx2.AsyncClient, url: str, start: int) -> tuple[bytes, int]:
    """Bytes from `start` on, and the size of the whole file; a redirect is followed by hand.

    Raises:
        PlanError: another status than “partial content”, or too many redirects.
    """
    headers = {"Range": f"bytes={start}-{start + STEP_BYTES - 1}"}
    for _ in range(MAX_REDIRECTS + 1):
        async with client.stream("GET", url, headers=headers) as response:
            place = response.headers.get("Location")
            if response.is_redirect and place:
                url = _redirected(url, place)
                continue
            whole = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if response.status_code != 206 or whole is None:
                raise PlanError(_refusal(response.status_code))
            return await response.aread(), int(whole[1])
    raise PlanError("Hugging Face redirects too often.")


def _redirected(url: str, place: str) -> str:
    joined = httpx2.URL(url).join(place)
    if joined.scheme != httpx2.URL(url).scheme:
        raise PlanError(f"Hugging Face redirects to {joined.scheme}. Download the file.")
    return str(joined)


def _refusal(status: int) -> str:
    if status in {401, 403}:
        return "Hugging Face does not give this file without a login. Download it."
    if status == 404:
        return "Hugging Face has no such file. Check the owner, the repository and the file."
    return f"Hugging Face answered with status {status}. Download the file."
