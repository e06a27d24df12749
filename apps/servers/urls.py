from django.urls import path

from apps.servers.pages.views import actions, defaults, entries, page

app_name = "servers"
urlpatterns = [
    path("", page.index, name="index"),
    path("cards/", page.cards, name="cards"),
    path("add/", entries.add, name="add"),
    path("test/", entries.test, name="test"),
    path("defaults/", defaults.defaults, name="defaults"),
    path("<int:pk>/", entries.edit, name="edit"),
    path("<int:pk>/check/", actions.check, name="check"),
    path("<int:pk>/act/", actions.act, name="act"),
    path("<int:pk>/remove/", entries.remove, name="remove"),
]
