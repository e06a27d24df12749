"""The router that the modules of this folder add their routes to."""

from ninja import Router

router = Router(tags=["generation"])
