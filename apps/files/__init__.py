"""Files of labelled texts, in and out, row by row.

What a file is (separator, encoding, header) is found in `inspect`, which column is what in
`guess_mapping`; `read` then yields one item a row in bounded memory, whatever the file holds. A row
that cannot be used is yielded too, with its number, the column and the reason: nothing is dropped
silently. Rows are counted as a spreadsheet counts them: the header is row 1.
"""

from apps.files.column_guess import guess_mapping, guess_split
from apps.files.files import (
    estimate_rows,
    extra_columns,
    guess,
    inspect,
    read,
    read_records,
    read_rows,
    sample,
    survey,
)
from apps.files.layout import (
    ENCODINGS,
    MAX_CELL,
    MAX_COLUMNS,
    MAX_LINE,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    SEPARATOR_NAMES,
    Kind,
    Layout,
    Quoting,
    Said,
    Tally,
)
from apps.files.readers.encoding import settled_encoding
from apps.files.rows import (
    JOINED_BY,
    MAX_EXTRA_CELL,
    MAX_EXTRA_COLUMNS,
    MAX_LABEL,
    MAX_LABELS,
    MAX_TEXT,
    SPLITS,
    ExampleRow,
    FormatError,
    Mapping,
    RejectedRow,
    checked,
    duplicate_key,
    label_key,
    plain,
    text_key,
)
from apps.files.writers import CsvWriter, JsonlWriter, ParquetWriter, TableWriter, create_writer
from apps.files.writers.csv_writer import csv_header, spreadsheet_safe
from apps.files.writers.table_writer import CONTENT_TYPES

__all__ = [
    "CONTENT_TYPES",
    "ENCODINGS",
    "JOINED_BY",
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
    "SEPARATOR_NAMES",
    "SPLITS",
    "CsvWriter",
    "ExampleRow",
    "FormatError",
    "JsonlWriter",
    "Kind",
    "Layout",
    "Mapping",
    "ParquetWriter",
    "Quoting",
    "RejectedRow",
    "Said",
    "TableWriter",
    "Tally",
    "checked",
    "create_writer",
    "csv_header",
    "duplicate_key",
    "estimate_rows",
    "extra_columns",
    "guess",
    "guess_mapping",
    "guess_split",
    "inspect",
    "label_key",
    "plain",
    "read",
    "read_records",
    "read_rows",
    "sample",
    "settled_encoding",
    "spreadsheet_safe",
    "survey",
    "text_key",
]
