"""Projects of a person with the text of their documents, as `imported_projects` reads them."""

import json
from typing import Any

from apps.chat.models import Document, Project


def export_project(pk: int) -> str:
    """Return a project as JSON; "" if it was deleted meanwhile.

    Files are deleted once they were read, so a document is its text, in passages.
    """
    project = Project.objects.select_related("system_prompt").filter(pk=pk).first()
    if project is None:
        return ""
    found = project.documents.exclude(tokens=None)
    value = {
        "name": project.name,
        "instructions": project.system_prompt.text if project.system_prompt else "",
        "documents": [_document(document) for document in found],
    }
    return json.dumps(value, ensure_ascii=False)


def _document(document: Document) -> dict[str, Any]:
    passages = document.passages.values_list("page", "text")
    return {
        "name": document.name,
        "created": document.created.isoformat(),
        "whole": document.whole,
        "passages": [{"page": page, "text": text} for page, text in passages],
    }
