"""Folders are small enough to be read at a glance."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 14
NOT_OURS = {"vendor", "__pycache__"}


@pytest.mark.parametrize("top", ["apps", "bench", "static", "templates", "tests"])
def test_no_folder_holds_more_files_than_a_reader_takes_in(top: str) -> None:
    folders = [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]
    sizes = {
        str(folder.relative_to(ROOT)): sum(path.is_file() for path in folder.iterdir())
        for folder in folders
        if not NOT_OURS & set(folder.parts)
    }
    full = {folder: size for folder, size in sizes.items() if size > MOST}
    assert not full, f"Move files that belong together into a folder of their own: {full}"
