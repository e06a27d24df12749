"""The routes of this room."""

from apps.classifiers import file_api  # its routes hang themselves in
from apps.classifiers.classifier_api import router

__all__ = ["file_api", "router"]
