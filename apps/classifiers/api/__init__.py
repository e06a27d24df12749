"""The routes of this room. Importing a module of routes adds them to the router."""

from apps.classifiers.api import files, predictions, versions
from apps.classifiers.api.classifiers import router

__all__ = ["files", "predictions", "router", "versions"]
