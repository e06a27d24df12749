"""The table backend by check in docs/backends.md, as a run of the tests made it."""

import re
from pathlib import Path

import pytest

from tests.backends.checks import all_checks
from tests.backends.programs import PROGRAMS, version
from tests.backends.stacks import all_stacks

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
OK, FAILED, NOT_RUN = "ok", "**no**", "?"


class Table:
    """Outcomes by stack and check."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}
        self._faults: list[str] = []

    def record(self, stack: str, check: str, report: pytest.TestReport) -> None:
        """Take the outcome of a check from a report; the one of its call counts most."""
        if report.failed:
            self._cells[stack, check] = FAILED
        elif hasattr(report, "wasxfail"):
            self._cells[stack, check] = "program"
            self._faults.append(f"- {stack}, {check}: {report.wasxfail.removeprefix('reason: ')}")
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._cells[stack, check] = NOT_RUN if "docs/backends.md" in reason else "-"
        elif report.when == "call":
            self._cells[stack, check] = OK

    def markdown(self) -> str:
        checks = list(all_checks())
        ran = [version(name) and f"{name} {version(name)}" for name in PROGRAMS]
        lines = [
            f"With {', '.join(filter(None, ran))}.",
            "",
            f"| | {' | '.join(checks)} |",
            f"|---{'|---' * len(checks)}|",
        ]
        for stack in all_stacks():
            cells = [self._cells.get((stack, check), NOT_RUN) for check in checks]
            lines.append(f"| {stack} | {' | '.join(cells)} |")
        return "\n".join(lines + ([""] if self._faults else []) + self._faults)

    def write_into(self, document: Path) -> None:
        """Replace the table between its two marks."""
        text = document.read_text(encoding="utf-8")
        table = f"{BEGIN}\n{self.markdown()}\n{END}"
        document.write_text(
            re.sub(f"{BEGIN}.*?{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8"
        )
