"""The routes of this room. Importing a module of routes adds them to the router."""

from apps.datasets.api import examples, imports, revisions
from apps.datasets.api.datasets import router

__all__ = ["examples", "imports", "revisions", "router"]
