from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.core import views

app_name = "core"
urlpatterns = [
    path("", views.home, name="home"),
    path("health", views.health, name="health"),
    path("login/", views.Login.as_view(), name="login"),
    path("login/link/<str:token>/", views.login_link, name="login_link"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("settings/", views.settings_page, name="settings"),
    path("settings/keys/", views.create_key, name="create_key"),
    path("settings/keys/<int:pk>/revoke/", views.revoke_key, name="revoke_key"),
]
