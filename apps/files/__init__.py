"""Files of labelled texts, in and out, row by row.

`detect_layout` finds how a file is written (separator, encoding, header) and `detect_mapping` which
columns hold text, label and split; `read_rows` then yields one item per row in bounded memory,
whatever the file holds. A row that cannot be used is yielded too, with its number, the column and
the reason: nothing is dropped silently. Rows are counted as a spreadsheet counts them: the header
is row 1.

`create_writer` writes tables; see `writers.table_writer`.
"""

from apps.files.columns import guess_mapping, split_of_file_name
from apps.files.detection import detect_layout, detect_mapping
from apps.files.errors import FormatError
from apps.files.layout import (
    ENCODINGS,
    MAX_CELL,
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    SEPARATOR_NAMES,
    Cells,
    FileKind,
    Layout,
    Quoting,
    ReadOptions,
)
from apps.files.line_counts import LineCounts
from apps.files.readers.encoding import confirm_encoding
from apps.files.reading import (
    SANDBOXED_KINDS,
    display_cells,
    estimate_rows,
    extra_columns,
    read_checked_rows,
    read_records,
    read_rows,
    sample_rows,
    to_row,
)
from apps.files.rows import (
    DEFAULT_MAPPING,
    LABEL_SEPARATOR,
    MAX_EXTRA_CELL,
    MAX_EXTRA_COLUMNS,
    MAX_LABEL,
    MAX_LABELS,
    MAX_TEXT,
    SPLITS,
    ColumnMapping,
    ExampleRow,
    RejectedRow,
    cell_text,
    check_row,
    label_key,
)
from apps.files.writers import CsvWriter, JsonlWriter, ParquetWriter, TableWriter, create_writer
from apps.files.writers.csv_writer import csv_header, spreadsheet_safe
from apps.files.writers.table_writer import CONTENT_TYPES

__all__ = [
    "CONTENT_TYPES",
    "DEFAULT_MAPPING",
    "ENCODINGS",
    "LABEL_SEPARATOR",
    "MAX_CELL",
    "MAX_COLUMNS",
    "MAX_EXTRA_CELL",
    "MAX_EXTRA_COLUMNS",
    "MAX_LABEL",
    "MAX_LABELS",
    "MAX_LINE",
    "MAX_TEXT",
    "SAMPLE_CHARACTERS",
    "SAMPLE_ROWS",
    "SANDBOXED_KINDS",
    "SEPARATOR_NAMES",
    "SPLITS",
    "Cells",
    "ColumnMapping",
    "CsvWriter",
    "ExampleRow",
    "FileKind",
    "FormatError",
    "JsonlWriter",
    "Layout",
    "LineCounts",
    "ParquetWriter",
    "Quoting",
    "ReadOptions",
    "RejectedRow",
    "TableWriter",
    "cell_text",
    "check_row",
    "confirm_encoding",
    "create_writer",
    "csv_header",
    "detect_layout",
    "detect_mapping",
    "display_cells",
    "estimate_rows",
    "extra_columns",
    "guess_mapping",
    "label_key",
    "read_checked_rows",
    "read_records",
    "read_rows",
    "sample_rows",
    "split_of_file_name",
    "spreadsheet_safe",
    "to_row",
]
