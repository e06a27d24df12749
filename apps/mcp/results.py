"""Converts the result of a tool call to text that a model can read (pure)."""

import json
from typing import Any


def result_text(result: Any) -> str:
    """Join the parts of a result; a part that is not text becomes its description."""
    parts = [_block_text(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(part for part in parts if part) or "No result."


def _block_text(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type} ({block.mime_type}), which cannot be given to you]"
        case "resource":
            inner = block.resource
            text = getattr(inner, "text", None)
            return str(text) if text is not None else f"[{inner.uri}, which is no text]"
        case "resource_link":
            return f"{block.name}: {block.uri}"
        case kind:
            return f"[{kind}, which cannot be given to you]"
