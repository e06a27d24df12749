"""The Dockerfile, read; test_services.py runs what it would make."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import image
from tests.deploy.compose import REPOSITORY

STAGES = image.stages()
LAST = STAGES[-1]


def test_the_base_is_the_python_of_the_tests() -> None:
    bases = {stage[0].arguments.partition(" ")[0] for stage in STAGES}
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert len(bases) == 1
    assert re.fullmatch(rf"python:{re.escape(minor)}-slim-[a-z]+", bases.pop())


def test_it_does_not_run_as_root() -> None:
    users = [i.arguments for i in LAST if i.name == "USER"]
    assert users == ["workbench"]
    after = LAST[[i.name for i in LAST].index("USER") + 1 :]
    assert not {i.name for i in after} & {"RUN", "COPY"}, "would belong to another user"
    created = next(i.arguments for i in LAST if "useradd" in i.arguments)
    assert int(re.findall(r"--uid (\d+)", created)[0]) > 0


def test_nothing_is_fetched_but_packages() -> None:
    for stage in STAGES:
        assert "ADD" not in {i.name for i in stage}
        for run in (i.arguments for i in stage if i.name == "RUN"):
            assert not re.search(r"https?:|curl|wget|\bapt|git clone", run)


def test_no_secret_is_kept_in_the_image() -> None:
    for stage in STAGES:
        for instruction in stage:
            if instruction.name in {"ENV", "ARG"}:
                assert not re.search(r"KEY|PASSWORD|SECRET|TOKEN", instruction.arguments)


@pytest.mark.parametrize("source", [s for copy in image.copies() for s in copy.sources])
def test_what_is_copied_is_in_the_repository_and_let_through(source: str) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--", source], cwd=REPOSITORY, capture_output=True, check=True
    )
    assert tracked.stdout
    patterns = (REPOSITORY / ".dockerignore").read_text().split("\n")
    assert next(p for p in patterns if p and not p.startswith("#")) == "*"
    assert f"!{source}" in patterns


def test_the_image_has_every_package_but_the_embedded_servers(tmp_path: Path) -> None:
    [command] = re.findall(r"sed -E '.+?' \S+", " ".join(i.arguments for i in STAGES[0]))
    requirements = (REPOSITORY / "requirements.txt").read_text()
    (tmp_path / "requirements.txt").write_text(requirements)
    command = command.replace("/tmp/requirements.txt", str(tmp_path / "requirements.txt"))
    kept = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    left_out = set(requirements.splitlines()) - set(kept.splitlines())
    assert {line.partition("==")[0] for line in left_out} == set(image.LEFT_OUT)
