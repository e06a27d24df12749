"""A survey of an upload before its import: how many rows it will give, and which to check."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from apps import files
from apps.datasets.imports import import_queue
from apps.datasets.imports.cell_warnings import CellChecker, alike_labels, rejection_warning
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Upload
from apps.files import SAMPLE_CHARACTERS, ExampleRow, Layout, LineCounts, RejectedRow

FIRST_ROWS = 20
MAX_SUSPECTS = 100  # rows that are listed
MAX_ROWS = import_queue.SMALL_ROWS  # read of all files, while a person waits


@dataclass(frozen=True, slots=True)
class SurveyedRow:
    line: int
    """Its first line in the file; its number in files without lines."""
    cells: list[str]
    warnings: list[str]
    """For each cell the reason to check it, or ""."""
    rejection: str = ""
    """Why the row cannot be read; it has no cells then."""
    file: str = ""

    @property
    def is_suspect(self) -> bool:
        return bool(self.rejection) or any(self.warnings)


@dataclass(slots=True)
class Survey:
    rows: int = 0
    """Rows that will be imported, of those that were read."""
    rejected: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    unlabelled: int = 0
    complete: bool = True
    """True if all rows were read."""
    estimated_rows: int = 0
    """About how many rows will be imported, if not all were read."""
    lines: list[LineCounts] = field(default_factory=list)
    """What the lines of each file became."""
    first: list[SurveyedRow] = field(default_factory=list)
    suspects: list[SurveyedRow] = field(default_factory=list)
    suspect_count: int = 0

    @property
    def rows_to_import(self) -> int:
        return self.rows if self.complete else self.estimated_rows

    @property
    def swallowed_lines(self) -> int:
        """Return the lines that are inside other cells, as a quote does not close."""
        return sum(one.swallowed_lines for one in self.lines)


Found = tuple[int, files.Cells | RejectedRow, ExampleRow | RejectedRow]


def survey_upload(
    upload: Upload, options: ImportOptions, layouts: Sequence[Layout], columns: Sequence[str]
) -> Survey:
    """Read an upload as far as a person waits, and count what its rows would become.

    Args:
        columns: those whose cells are shown and checked.
    """
    survey = count_rows(upload, options, layouts)
    alike = alike_labels(survey.labels)
    several = len(upload.files) > 1
    for place, (part, layout) in enumerate(zip(upload.files, layouts, strict=True)):
        checker = CellChecker(layout, options.mapping, alike, survey.labels)
        for found in _read(upload, place, options, layout, LineCounts()):
            row = _surveyed(found, checker, columns, part["name"] if several else "")
            if place == 0 and len(survey.first) < FIRST_ROWS:
                survey.first.append(row)
            survey.suspect_count += row.is_suspect
            if row.is_suspect and len(survey.suspects) < MAX_SUSPECTS:
                survey.suspects.append(row)
    return survey


def count_rows(upload: Upload, options: ImportOptions, layouts: Sequence[Layout]) -> Survey:
    """Count what the rows of an upload would become."""
    survey = Survey()
    for place, layout in enumerate(layouts):
        counts = LineCounts()
        survey.lines.append(counts)
        rows, seen = survey.rows, 0
        for _, _, row in _read(upload, place, options, layout, counts):
            seen += 1
            _count(survey, row)
        estimate = files.estimate_rows(upload.path_of(place), layout)
        read_all = seen < _row_limit(upload) and _reads_all(upload, place, layout, seen)
        survey.complete &= read_all
        rows = survey.rows - rows
        lines = counts.lines or seen
        survey.estimated_rows += rows if read_all else round(estimate * rows / max(1, lines))
    return survey


def _count(survey: Survey, row: ExampleRow | RejectedRow) -> None:
    if isinstance(row, RejectedRow):
        survey.rejected += 1
        return
    survey.rows += 1
    if row.label:
        survey.labels[row.label] += 1
    else:
        survey.unlabelled += 1


def _reads_all(upload: Upload, place: int, layout: Layout, seen: int) -> bool:
    if layout.kind in files.SANDBOXED_KINDS:
        return _is_small(upload, layout) or seen <= files.SAMPLE_ROWS
    return upload.path_of(place).stat().st_size <= SAMPLE_CHARACTERS // len(upload.files)


def _row_limit(upload: Upload) -> int:
    return MAX_ROWS // len(upload.files)


def _is_small(upload: Upload, layout: Layout) -> bool:
    return upload.size <= import_queue.SMALL_BYTES and layout.estimated_rows <= MAX_ROWS


def _read(
    upload: Upload, place: int, options: ImportOptions, layout: Layout, counts: LineCounts
) -> Iterator[Found]:
    """Yield the first line of each row, its cells and what it will be."""
    mapping = options.mapping
    whole = layout.kind in files.SANDBOXED_KINDS and _is_small(upload, layout)
    records = files.read_records(
        upload.path_of(place),
        layout,
        max_characters=None if whole else SAMPLE_CHARACTERS // len(upload.files),
        counts=counts,
    )
    for seen, (number, cells) in enumerate(records, start=1):
        line = counts.row_line if counts.lines else number
        if isinstance(cells, RejectedRow):
            yield line, cells, cells
        else:
            row = files.to_row(number, cells, layout, mapping)
            if isinstance(row, ExampleRow):
                row = files.check_row(row, number, mapping, unlabelled=mapping.accepts_unlabelled)
            yield line, cells, row
        if seen == _row_limit(upload):
            return


def _surveyed(found: Found, checker: CellChecker, columns: Sequence[str], file: str) -> SurveyedRow:
    line, record, row = found
    if isinstance(record, RejectedRow):
        return SurveyedRow(line, [], [], rejection_warning(record), file)
    cells = files.display_cells(record, columns)
    warnings = [
        checker.warning(cell, column, line) for cell, column in zip(cells, columns, strict=True)
    ]
    if isinstance(row, RejectedRow) and row.column in columns:
        place = list(columns).index(row.column)
        warnings[place] = warnings[place] or rejection_warning(row)
    return SurveyedRow(line, cells, warnings, file=file)
