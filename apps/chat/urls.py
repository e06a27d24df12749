from django.urls import path

from apps.chat import views

app_name = "chat"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.begin, name="begin"),
    path("older/", views.older, name="older"),
    path("<int:pk>/", views.conversation, name="conversation"),
    path("<int:pk>/ask/", views.ask, name="ask"),
    path("<int:pk>/rename/", views.rename, name="rename"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("answers/<int:pk>/", views.answer, name="answer"),
    path("answers/<int:pk>/stop/", views.stop, name="stop"),
    path("answers/<int:pk>/again/", views.answer_again, name="answer_again"),
    path("answers/<int:pk>/show/", views.show, name="show"),
]
