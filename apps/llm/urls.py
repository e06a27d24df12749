from django.urls import path

from apps.llm import views

app_name = "llm"
urlpatterns = [
    path("", views.index, name="index"),
    path("cards/", views.cards, name="cards"),
    path("add/", views.add, name="add"),
    path("<int:pk>/default/", views.make_default, name="make_default"),
    path("<int:pk>/remove/", views.remove, name="remove"),
]
