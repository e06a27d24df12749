from django.urls import path

from apps.gateway import views

app_name = "gateway"
urlpatterns = [
    path("connect/", views.connect, name="connect"),
]
