import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.embedded.model_files.embedding_model import prepare
from tests.llama_process import REPOSITORY, LlamaProcess


@pytest.fixture(scope="session")
def embedding_model() -> Path:
    """The model the product embeds with, fetched once per machine."""
    cache = Path(os.environ.get("WORKBENCH_TEST_CACHE", REPOSITORY / ".cache"))
    return prepare(cache, report=lambda sentence: None)


@pytest.fixture(scope="session")
def embedding_server(embedding_model: Path) -> Iterator[LlamaProcess]:
    with LlamaProcess(embedding_model, embeddings=True, context_per_slot=512) as process:
        yield process
