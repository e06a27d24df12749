"""Writes imported projects and documents to the database.

A project that its owner has already is added to, and keeps its instructions. A document comes back
as its text: it is embedded again, by the model that is set now.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db import transaction

from apps.chat.conversations import projects
from apps.chat.conversations.projects import BadProject
from apps.chat.knowledge import documents
from apps.chat.knowledge.chunking import Chunk, Page, split_pages
from apps.chat.knowledge.documents import BadDocument
from apps.chat.models import Document, Project
from apps.chat.prompt.token_estimate import text_bytes
from apps.chat.transfer.imported_projects import ImportedDocument, ImportedProject
from apps.chat.transfer.normalise import ImportedConversation
from apps.chat.transfer.read import BadFile
from apps.core.text.storable import to_storable


@dataclass
class ProjectImport:
    """The projects of one import."""

    owner: User
    documents: list[int] = field(default_factory=list)
    """Those that were written."""
    _known: dict[str, Project] = field(default_factory=dict)
    _created: list[int] = field(default_factory=list)

    def write_from(
        self, items: Iterable[ImportedProject | ImportedConversation]
    ) -> Iterator[ImportedConversation]:
        """Write the projects of what an export has, and yield the conversations.

        Raises:
            BadFile: the owner would have more than the limits allow.
        """
        for item in items:
            if isinstance(item, ImportedConversation):
                yield item
            else:
                self._write(item)

    def project_of(self, name: str) -> Project | None:
        """Return the project with this name, created if it is not there; None for no name.

        Raises:
            BadFile: the owner has too many projects.
        """
        name = " ".join(to_storable(name).split())[: projects.NAME_LENGTH]
        if not name:
            return None
        if name not in self._known:
            found = Project.objects.owned_by(self.owner).filter(name=name).first()
            self._known[name] = found or self._create(name)
        return self._known[name]

    def _create(self, name: str) -> Project:
        try:
            created = projects.create(self.owner, name)
        except BadProject as error:
            raise BadFile(str(error)) from error
        self._created.append(created.pk)
        return created

    def _write(self, item: ImportedProject) -> None:
        project = self.project_of(item.name)
        if project is None:
            return
        if project.pk in self._created and item.instructions:
            text = to_storable(item.instructions)[: projects.MAX_INSTRUCTIONS]
            projects.change(project, instructions=text)
        for document in item.documents:
            try:
                self._write_document(project, document)
            except BadDocument as error:
                raise BadFile(str(error)) from error

    @transaction.atomic
    def _write_document(self, project: Project, item: ImportedDocument) -> None:
        pages = (Page(to_storable(passage.text), passage.page) for passage in item.passages)
        chunks: list[Chunk] = list(split_pages(pages))
        name = documents.clean_name(to_storable(item.name))
        size = sum(text_bytes(chunk.text) for chunk in chunks)
        document = Document(owner=self.owner, project=project, name=name, size=size)
        if not chunks or self._is_there(document, chunks):
            return
        documents.check_room(project, name, size)
        document.save()
        documents.store_passages(document, chunks)
        if item.whole:
            with suppress(BadDocument):  # too many of them here: it is searched instead
                documents.set_whole(document, True)
        self.documents.append(document.pk)

    def _is_there(self, document: Document, chunks: list[Chunk]) -> bool:
        """Return True if the project has a document of this name with this text."""
        same = document.project.documents.filter(name=document.name, passage_count=len(chunks))
        texts = [chunk.text for chunk in chunks]
        return any(list(found.passages.values_list("text", flat=True)) == texts for found in same)

    def finish(self) -> None:
        """Have the documents embedded."""
        for document in Document.objects.filter(pk__in=self.documents):
            documents.retry(document)

    def undo(self) -> None:
        """Delete what was written."""
        Document.objects.filter(pk__in=self.documents).delete()
        Project.objects.filter(pk__in=self._created).delete()
