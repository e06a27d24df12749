"""The routes of this room. Importing a module of routes adds them to the router."""

from apps.generation.api import rows
from apps.generation.api.jobs import router

__all__ = ["router", "rows"]
