"""The Dockerfile, read; test_services.py runs what it would make."""

import re
import subprocess
import sys

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


def test_container_does_not_run_as_root() -> None:
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


def pinned(name: str) -> dict[str, str]:
    """By package, its version in a file of requirements."""
    text = (REPOSITORY / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", text, re.MULTILINE))


def test_the_image_has_every_package_but_the_embedded_servers() -> None:
    everything = pinned("requirements.txt") | pinned("requirements/exports.txt")
    image_has = pinned("requirements/server.txt")
    assert image_has.items() <= everything.items()
    missing = everything.keys() - image_has.keys()
    assert missing >= set(image.LEFT_OUT)
    # What only those two bring, and nothing of ours imports.
    assert missing - set(image.LEFT_OUT) <= {"valkey"}
