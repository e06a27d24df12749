"""Options of an import as a person confirmed them, and the checks of files against them."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from apps import files
from apps.core.schemas.json_types import JsonObject
from apps.datasets.models import Upload
from apps.files import ColumnMapping, FormatError, Layout, Quoting, ReadOptions


@dataclass(frozen=True, slots=True)
class ImportOptions:
    name: str
    mapping: ColumnMapping
    read: ReadOptions = field(default_factory=ReadOptions)

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> "ImportOptions":
        stored: Any = value
        read = ReadOptions(**stored["read"])
        if read.quoting is not None:
            read = replace(read, quoting=Quoting(read.quoting))
        ignored = tuple(stored["mapping"].get("ignored", ()))
        mapping = ColumnMapping(**{**stored["mapping"], "ignored": ignored})
        return cls(stored["name"], mapping, read)


def check_files(upload: Upload, options: ImportOptions) -> list[Layout]:
    """Return the layout of each file.

    Raises:
        FormatError: a file cannot be read, or lacks a column.
    """
    layouts = []
    several = len(upload.files) > 1
    for place, file in enumerate(upload.files):
        try:
            layout = files.detect_layout(
                upload.path_of(place), name=file["name"], options=options.read
            )
            check_mapping(layout, options.mapping)
        except FormatError as error:
            raise FormatError(f"{file['name']}: {error}" if several else str(error)) from error
        layouts.append(layout)
    return layouts


def check_mapping(layout: Layout, mapping: ColumnMapping) -> None:
    """Raises:
    FormatError: a column is missing, or chosen twice.
    """
    for column in mapping.columns:
        if column not in layout.columns and column not in layout.paths:
            there = ", ".join(f"“{name}”" for name in layout.selectable_columns[:20])
            raise FormatError(f"No column “{column}”. Available columns: {there}.")
    if mapping.label is None and mapping.second_label:
        raise FormatError("Choose the first label column before a second one.")
    if mapping.text in {mapping.label, mapping.second_label}:
        raise FormatError("Choose different columns for text and label.")
    if mapping.label is not None and mapping.label == mapping.second_label:
        raise FormatError("Choose two different label columns.")
    if mapping.split in {mapping.text, mapping.label, mapping.second_label} - {None}:
        raise FormatError("Choose a split column other than the text or label column.")
