"""The formats of an export."""

from enum import StrEnum

from apps.files.writers.table_writer import CONTENT_TYPES


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    CHAT = "chat"
    """One conversation per line, as OpenAI's fine-tuning reads them."""

    @property
    def content_type(self) -> str:
        return "application/jsonl" if self.suffix.endswith("jsonl") else CONTENT_TYPES[self.value]

    @property
    def suffix(self) -> str:
        return "-chat.jsonl" if self is Format.CHAT else f".{self.value}"
