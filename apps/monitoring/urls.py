from django.urls import path

from apps.monitoring.views import history

app_name = "monitoring"
urlpatterns = [
    path("servers/<int:pk>/history/", history.history, name="history"),
]
