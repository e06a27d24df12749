from django.urls import path

from apps.mcp import views

app_name = "mcp"
urlpatterns = [
    path("", views.index, name="index"),
    path("add/", views.add, name="add"),
    path("add-own/", views.add_own, name="add_own"),
    path("<int:pk>/", views.edit, name="edit"),
    path("<int:pk>/look/", views.refresh, name="refresh"),
    path("<int:pk>/remove/", views.remove, name="remove"),
]
