"""The programs, where this machine has them, and their versions."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

import pytest


@dataclass(frozen=True)
class Program:
    """A program on the PATH, or at the place that an environment variable names."""

    name: str
    variable: str
    version_flag: str
    version_pattern: str

    def find(self) -> str | None:
        """Return its path; None where this machine has none.

        Raises:
            FileNotFoundError: the variable names something that cannot be run.
        """
        named = os.environ.get(self.variable)
        found = shutil.which(named or self.name)
        if named and found is None:
            raise FileNotFoundError(f"{self.variable} names no program: {named}")
        return found


PROGRAMS = {
    program.name: program
    for program in (
        Program("llama-server", "WORKBENCH_TEST_LLAMA_SERVER", "--version", r"version: (.+)"),
        Program("llama-swap", "WORKBENCH_TEST_LLAMA_SWAP", "--version", r"version: (\S+)"),
        Program("olla", "WORKBENCH_TEST_OLLA", "--version", r"(v\d+[\w.-]*)"),
        Program("litellm", "WORKBENCH_TEST_LITELLM", "--version", r"(\d+\.\d+\.\d+)"),
        Program("ollama", "WORKBENCH_TEST_OLLAMA", "--version", r"version is (\S+)"),
        Program("nginx", "WORKBENCH_TEST_NGINX", "-v", r"nginx/(\S+)"),
        Program("openssl", "WORKBENCH_TEST_OPENSSL", "version", r"OpenSSL (\S+)"),
    )
}


def command(name: str) -> str:
    """Return the path of a program; skip the test, and say why, where there is none."""
    found = PROGRAMS[name].find()
    if found is None:
        pytest.skip(
            f"no {name} on the PATH or in {PROGRAMS[name].variable}; docs/backends.md says how to "
            "get it"
        )
    return found


@cache
def version(name: str) -> str:
    """Return what a program says of its version, or "" where it is not here or says nothing."""
    program = PROGRAMS[name]
    path = program.find()
    if path is None:
        return ""
    said = subprocess.run(
        [path, program.version_flag], capture_output=True, text=True, timeout=120, check=False
    )
    found = re.search(program.version_pattern, said.stdout + said.stderr)
    return found[1].strip() if found else ""
