"""Counts of what the lines of a text file became, for the preview and the notes of an import."""

from dataclasses import dataclass, field

MAX_SUSPECTS = 20  # rows that are listed


@dataclass(slots=True)
class LineCounts:
    lines: int = 0
    rows: int = 0
    """Rows that were read or rejected: no header, no blank line."""
    multiline_rows: int = 0
    """Rows with line breaks in a cell."""
    longest: int = 0
    """The most lines of one row."""
    row_lines: int = 1
    """Lines of the row that was read last."""
    swallowed_lines: int = 0
    """Lines inside of suspicious rows, after their first line."""
    suspects: list[int] = field(default_factory=list)
    """The numbers of the first rows with a stray quote, or with lines that could be rows."""

    @property
    def row_line(self) -> int:
        """Return the first line of the row that was read last."""
        return self.lines - self.row_lines + 1

    def add(self, number: int, lines: int, suspect: bool) -> None:
        self.rows += 1
        self.row_lines = lines
        if lines > 1:
            self.multiline_rows += 1
            self.longest = max(self.longest, lines)
        self.swallowed_lines += lines - 1 if suspect else 0
        if suspect and len(self.suspects) < MAX_SUSPECTS:
            self.suspects.append(number)

    @property
    def description(self) -> str:
        """Return sentences: “120 lines, 84 rows. 12 rows hold line breaks, the longest 4 lines.”"""
        lines = "1 line" if self.lines == 1 else f"{self.lines:,} lines"
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        if not self.multiline_rows:
            return f"{lines}, {rows}."
        several = self.multiline_rows
        hold = "1 row holds" if several == 1 else f"{several:,} rows hold"
        return f"{lines}, {rows}. {hold} line breaks, the longest {self.longest:,} lines."
