from django.urls import path

from apps.monitoring.views import history, metrics

app_name = "monitoring"
urlpatterns = [
    path("metrics", metrics.metrics, name="metrics"),
    path("servers/<int:pk>/history/", history.history, name="history"),
]
