from django.urls import include, path

from workbench.api import api
from workbench.openai_api import api as openai_api

urlpatterns = [
    path("api/v1/", api.urls),  # first: programs ask most often
    path("v1/", openai_api.urls),
    path("", include("apps.core.urls")),
    path("chat/", include("apps.chat.urls")),
    path("settings/presets/", include("apps.chat.settings_urls")),
    path("datasets/", include("apps.datasets.urls")),
    path("classify/", include("apps.classifiers.urls")),
    path("generate/", include("apps.generation.urls")),
    path("servers/", include("apps.tuning.urls")),
    path("", include("apps.monitoring.urls")),
    path("servers/", include("apps.gateway.urls")),
    path("servers/", include("apps.servers.urls")),
    path("tools/", include("apps.mcp.urls")),
]

handler400 = "apps.core.http.error_pages.bad_request"
handler403 = "apps.core.http.error_pages.permission_denied"
handler404 = "apps.core.http.error_pages.page_not_found"
handler500 = "apps.core.http.error_pages.server_error"
