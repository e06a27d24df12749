"""Files and batches of OpenAI's API."""

from ninja import Router

from apps.gateway.api import batches, files

router = Router()
router.add_router("", files.router)
router.add_router("", batches.router)

__all__ = ["router"]
