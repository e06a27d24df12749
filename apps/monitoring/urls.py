from django.urls import path

from apps.monitoring.views import alerts, history, metrics

app_name = "monitoring"
urlpatterns = [
    path("servers/alerts/", alerts.alerts, name="alerts"),
    path("metrics", metrics.metrics, name="metrics"),
    path("servers/<int:pk>/history/", history.history, name="history"),
]
