from django.urls import path

from apps.classifiers import views

app_name = "classifiers"
urlpatterns = [path("", views.index, name="index")]
