"""The routes of this room. Importing a module of routes adds them to the router."""

from apps.generation.api import job_actions, jobs, near_duplicates, row_exports, rows
from apps.generation.api.router import router

__all__ = ["job_actions", "jobs", "near_duplicates", "router", "row_exports", "rows"]
