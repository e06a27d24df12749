"""The routes of this room."""

from apps.datasets import example_api, import_api, revision_api  # their routes hang themselves in
from apps.datasets.dataset_api import router

__all__ = ["example_api", "import_api", "revision_api", "router"]
