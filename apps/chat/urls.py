from django.urls import path

from apps.chat import branch_views, library_views, settings_views, views

app_name = "chat"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.begin, name="begin"),
    path("older/", library_views.older, name="older"),
    path("find/", library_views.find, name="find"),
    path("bulk/", library_views.bulk, name="bulk"),
    path("<int:pk>/undo/", library_views.undo, name="undo"),
    path("<int:pk>/pin/", library_views.pin, name="pin"),
    path("<int:pk>/archive/", library_views.archive, name="archive"),
    path("<int:pk>/tags/", library_views.set_tags, name="set_tags"),
    path("<int:pk>/", views.conversation, name="conversation"),
    path("<int:pk>/ask/", views.ask, name="ask"),
    path("<int:pk>/rename/", views.rename, name="rename"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/settings/", settings_views.settings, name="settings"),
    path("<int:pk>/settings/prompt/", settings_views.write_prompt, name="write_prompt"),
    path("<int:pk>/settings/preset/", settings_views.apply_preset, name="apply_preset"),
    path("<int:pk>/settings/preset/save/", settings_views.save_preset, name="save_preset"),
    path("<int:pk>/settings/preset/delete/", settings_views.delete_preset, name="delete_preset"),
    path("<int:pk>/model/", settings_views.model, name="model"),
    path("questions/<int:pk>/", branch_views.question, name="question"),
    path("questions/<int:pk>/edit/form/", branch_views.edit_form, name="edit_form"),
    path("questions/<int:pk>/edit/", branch_views.edit, name="edit"),
    path("questions/<int:pk>/answer/", branch_views.answer, name="answer_question"),
    path("messages/<int:pk>/remove/", branch_views.remove, name="remove"),
    path("messages/<int:pk>/restore/", branch_views.restore, name="restore"),
    path("answers/<int:pk>/continue/", branch_views.go_on, name="go_on"),
    path("answers/<int:pk>/", views.answer, name="answer"),
    path("answers/<int:pk>/stop/", views.stop, name="stop"),
    path("answers/<int:pk>/again/", views.answer_again, name="answer_again"),
    path("answers/<int:pk>/show/", views.show, name="show"),
]
