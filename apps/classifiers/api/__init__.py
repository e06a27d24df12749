"""The routes of this room. Importing a module of routes adds them to the router."""

from apps.classifiers.api import files
from apps.classifiers.api.classifiers import router

__all__ = ["files", "router"]
