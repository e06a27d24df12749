from django.urls import path

from apps.gateway.views import batches, connect, usage

app_name = "gateway"
urlpatterns = [
    path("connect/", connect.connect, name="connect"),
    path("batches/<int:pk>/", batches.batch, name="batch"),
    path("batches/<int:pk>/results/<str:kind>/", batches.results, name="batch_results"),
    path("batches/<int:pk>/<str:action>/", batches.act, name="batch_action"),
    path("usage/", usage.usage, name="usage"),
    path("usage.csv", usage.usage_csv, name="usage_csv"),
]
