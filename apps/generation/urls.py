from django.urls import path

from apps.generation import views

app_name = "generation"
urlpatterns = [path("", views.index, name="index")]
