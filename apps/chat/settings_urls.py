"""Pages of chats below the settings page."""

from django.urls import path

from apps.chat.views.preferences import presets

app_name = "presets"
urlpatterns = [
    path("", presets.index, name="index"),
    path("new/", presets.create, name="create"),
    path("prompt/", presets.system_prompt, name="system_prompt"),
    path("<int:pk>/", presets.edit, name="edit"),
    path("<int:pk>/delete/", presets.delete, name="delete"),
]
