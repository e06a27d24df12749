"""Static files travel compressed where a browser takes that, and are compressed once."""

import gzip
import os
from pathlib import Path

from django.test import AsyncClient

from apps.runtime.static_files import compressed

SCRIPT = "/static/vendor/htmx/htmx-2.0.11.min.js"
ORIGINAL = Path(__file__).parent.parent.parent / SCRIPT.lstrip("/")


async def body(headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
    answer = await AsyncClient().get(SCRIPT, headers=headers)
    assert answer.status_code == 200
    return dict(answer.items()), b"".join([part async for part in answer.streaming_content])


async def test_a_script_is_compressed_for_who_takes_it() -> None:
    headers, sent = await body({"accept-encoding": "gzip, br"})
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Vary"] == "Accept-Encoding"
    assert int(headers["Content-Length"]) == len(sent) < ORIGINAL.stat().st_size / 2
    assert headers["Content-Type"].startswith("text/javascript")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert gzip.decompress(sent) == ORIGINAL.read_bytes()


async def test_and_as_it_is_for_others() -> None:
    headers, sent = await body({})
    assert "Content-Encoding" not in headers
    assert sent == ORIGINAL.read_bytes()


def test_compressed_file_is_cached_until_its_source_changes(tmp_path: Path) -> None:
    file, folder = tmp_path / "a.js", tmp_path / "made"
    file.write_text("one " * 100)
    first = compressed(file, folder)
    assert first is not None
    assert compressed(file, folder) == first
    file.write_text("two " * 100)
    os.utime(file, (1, 1))
    second = compressed(file, folder)
    assert second is not None
    assert gzip.decompress(second.read_bytes()) == b"two " * 100
    assert list(folder.iterdir()) == [second]
    assert compressed(tmp_path / "font.woff2", folder) is None


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_fail(tmp_path: Path) -> None:
    file = tmp_path / "a.css"
    file.write_text("p { color: red }")
    (tmp_path / "no-folder").write_text("")
    assert compressed(file, tmp_path / "no-folder") is None
