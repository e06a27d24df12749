"""The scripts and the Makefile name files of this repository, which others move and rename."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / "Makefile", ROOT / ".ci" / "run", *sorted((ROOT / "scripts").iterdir())]
NAMED = re.compile(
    r"(?<![\w./-])((?:apps|bench|demo|deploy|docs|requirements|scripts|tests)/[\w./-]*\w)"
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_paths_that_a_script_names_exist(script: Path) -> None:
    named = NAMED.findall(script.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_paths_of_the_fast_tests_are_among_those_checked() -> None:
    text = (ROOT / "scripts" / "test-pythons").read_text(encoding="utf-8")
    assert "tests/embedded/test_llama_server.py" in NAMED.findall(text)
