from django.urls import include, path

from workbench.api import api

urlpatterns = [
    path("api/v1/", api.urls),  # first: programs ask most often
    path("", include("apps.core.urls")),
    path("chat/", include("apps.chat.urls")),
    path("datasets/", include("apps.datasets.urls")),
    path("classify/", include("apps.classifiers.urls")),
    path("generate/", include("apps.generation.urls")),
    path("servers/", include("apps.llm.urls")),
    path("tools/", include("apps.mcp.urls")),
]
