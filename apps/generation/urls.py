from django.urls import path

from apps.generation import views

app_name = "generation"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.new, name="new"),
    path("preview/", views.preview, name="preview"),
    path("<int:pk>/", views.job, name="job"),
    path("<int:pk>/progress/", views.progress, name="progress"),
    path("<int:pk>/rows/", views.rows, name="rows"),
    path("<int:pk>/rows/<int:index>/", views.row, name="row"),
    path("<int:pk>/export/", views.export, name="export"),
    path("<int:pk>/dataset/", views.dataset, name="dataset"),
    path("<int:pk>/<str:action>/", views.act, name="act"),
]
