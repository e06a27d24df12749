"""The form of an import: how the file is read, and what each column is."""

from dataclasses import dataclass
from enum import StrEnum

from django.http import QueryDict

from apps import files as apps_files
from apps.files import ColumnMapping, FileKind, Layout, Quoting, ReadOptions

SEPARATORS = [
    ("tab", "\t", "Tab", "Tab"),
    ("semicolon", ";", ";", "Semicolon"),
    ("comma", ",", ",", "Comma"),
    ("bar", "|", "|", "Vertical bar"),
    ("none", "", "None", "None: one text per line"),
]
"""Value in the form, separator, short and long name."""
QUOTINGS = [
    ("auto", "Automatic"),
    (Quoting.STANDARD.value, "Standard"),
    (Quoting.NONE.value, "Plain text"),
]
_SEPARATOR_OF = {value: separator for value, separator, _, _ in SEPARATORS}


class Role(StrEnum):
    """What the cells of a column become."""

    TEXT = "text"
    LABEL = "label"
    SECOND_LABEL = "label2"
    SPLIT = "split"
    KEEP = "keep"
    IGNORE = "ignore"


ROLE_NAMES = {
    Role.TEXT: "Text",
    Role.LABEL: "Label",
    Role.SECOND_LABEL: "Second label",
    Role.SPLIT: "Split",
    Role.KEEP: "Keep",
    Role.IGNORE: "Ignore",
}
_SINGLE = (Role.TEXT, Role.LABEL, Role.SECOND_LABEL, Role.SPLIT)


@dataclass(frozen=True, slots=True)
class ImportForm:
    mapping: ColumnMapping | None
    read: ReadOptions
    name: str = ""
    added: str = ""
    """A column that was added to the table."""


def read_form(data: QueryDict) -> ImportForm:
    """Read the form; without values on the first visit."""
    if "column" not in data:
        return ImportForm(None, ReadOptions())
    encoding = str(data.get("encoding") or "")
    quoting = "none" if data.get("fix") == "quotes" else str(data.get("quoting") or "")
    read = ReadOptions(
        header=data.get("header") == "names" if "header" in data else None,
        separator=_SEPARATOR_OF.get(str(data.get("separator") or "")),
        encoding=encoding if encoding in apps_files.ENCODINGS else None,
        sheet=str(data.get("sheet") or "") or None,
        quoting=Quoting(quoting) if quoting in {"standard", "none"} else None,
    )
    name, added = str(data.get("name") or ""), str(data.get("add") or "")
    return ImportForm(_mapping(data), read, name, added)


def _mapping(data: QueryDict) -> ColumnMapping | None:
    """Return what the columns are; None if none is the text."""
    chosen: dict[str, str] = {}
    columns, roles = data.getlist("column"), data.getlist("role")
    for column, role in zip(columns, roles, strict=False):
        if role in _SINGLE:
            chosen.setdefault(role, str(column))
    if Role.TEXT not in chosen:
        return None
    pairs = zip(columns, roles, strict=False)
    return ColumnMapping(
        chosen[Role.TEXT],
        chosen.get(Role.LABEL),
        chosen.get(Role.SPLIT),
        second_label=chosen.get(Role.SECOND_LABEL),
        keep_unlabelled="keep_unlabelled" in data or data.get("fix") == "unlabelled",
        ignored=tuple(str(column) for column, role in pairs if role == Role.IGNORE),
    )


def role_of(column: str, mapping: ColumnMapping, extra: tuple[str, ...]) -> Role:
    """Return what a column is under a mapping."""
    roles = dict.fromkeys(extra, Role.KEEP)
    roles |= {mapping.split or "": Role.SPLIT, mapping.second_label or "": Role.SECOND_LABEL}
    roles |= {mapping.label or "": Role.LABEL, mapping.text: Role.TEXT}
    return roles.get(column, Role.IGNORE)


def separator_choice(layout: Layout) -> str:
    """Return the separator of a file as the form has it."""
    if layout.kind is FileKind.TEXT:
        return "none"
    return next(value for value, found, _, _ in SEPARATORS if found == layout.separator)
