from django.urls import path

from apps.servers.pages import views

app_name = "servers"
urlpatterns = [
    path("", views.index, name="index"),
    path("cards/", views.cards, name="cards"),
    path("add/", views.add, name="add"),
    path("test/", views.test, name="test"),
    path("defaults/", views.defaults, name="defaults"),
    path("<int:pk>/", views.edit, name="edit"),
    path("<int:pk>/check/", views.check, name="check"),
    path("<int:pk>/act/", views.act, name="act"),
    path("<int:pk>/remove/", views.remove, name="remove"),
]
