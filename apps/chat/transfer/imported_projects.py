"""Projects with the text of their documents, as an export of Workbench has them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.chat.transfer.normalise import Unreadable

MAX_DOCUMENTS = 1_000  # of one project: what it may have is checked when it is written
MAX_PASSAGES = 50_000
MAX_PAGE = 1_000_000


@dataclass
class ImportedPassage:
    text: str
    page: int | None = None


@dataclass
class ImportedDocument:
    name: str
    whole: bool = False
    passages: list[ImportedPassage] = field(default_factory=list)


@dataclass
class ImportedProject:
    name: str
    instructions: str = ""
    documents: list[ImportedDocument] = field(default_factory=list)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "ImportedProject":
        """Read a project of an export, or of the process that read one.

        Raises:
            Unreadable: it has no name, or too much.
        """
        name = " ".join(str(value.get("name") or "").split())
        if not name:
            raise Unreadable("it has no name")
        documents = [_document(item) for item in value.get("documents") or []]
        passages = sum(len(document.passages) for document in documents)
        if len(documents) > MAX_DOCUMENTS or passages > MAX_PASSAGES:
            raise Unreadable(f"it has {len(documents):,} documents and {passages:,} passages")
        return cls(name, str(value.get("instructions") or ""), documents)


def _document(item: Mapping[str, Any]) -> ImportedDocument:
    passages = [_passage(passage) for passage in item.get("passages") or []]
    return ImportedDocument(str(item.get("name") or ""), bool(item.get("whole")), passages)


def _passage(item: Mapping[str, Any]) -> ImportedPassage:
    page = item.get("page")
    known = isinstance(page, int) and not isinstance(page, bool) and 0 < page <= MAX_PAGE
    return ImportedPassage(str(item["text"]), page if known else None)
