"""The routes of this room."""

from apps.generation import row_api  # its routes hang themselves in
from apps.generation.job_api import router

__all__ = ["router", "row_api"]
