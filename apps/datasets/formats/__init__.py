"""Files of labelled texts, in and out, row by row.

What a file is (separator, encoding, header) is found in `inspect`, which column is what in
`guess_mapping`; `read` then yields one item a row in bounded memory, whatever the file holds. A row
that cannot be used is yielded too, with its number, the column and the reason: nothing is dropped
silently. Rows are counted as a spreadsheet counts them: the header is row 1.
"""

from apps.datasets.formats.encoding import settled_encoding
from apps.datasets.formats.export import (
    ParquetPieces,
    csv_line,
    csv_lines,
    jsonl_line,
    spreadsheet_safe,
)
from apps.datasets.formats.files import (
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
from apps.datasets.formats.guess import guess_mapping, guess_split
from apps.datasets.formats.layout import (
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
from apps.datasets.formats.rows import (
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

__all__ = [
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
    "ExampleRow",
    "FormatError",
    "Kind",
    "Layout",
    "Mapping",
    "ParquetPieces",
    "Quoting",
    "RejectedRow",
    "Said",
    "Tally",
    "checked",
    "csv_line",
    "csv_lines",
    "duplicate_key",
    "estimate_rows",
    "extra_columns",
    "guess",
    "guess_mapping",
    "guess_split",
    "inspect",
    "jsonl_line",
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
