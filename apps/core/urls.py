from django.contrib.auth.views import LogoutView
from django.urls import path

from apps.core.accounts import account_views, key_views, login_views, people_views

app_name = "core"
urlpatterns = [
    path("", login_views.home, name="home"),
    path("health", login_views.health, name="health"),
    path("login/", login_views.Login.as_view(), name="login"),
    path("login/link/<str:token>/", login_views.login_link, name="login_link"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("settings/", account_views.show_settings, name="settings"),
    path("settings/name/", account_views.rename, name="rename"),
    path("settings/password/", account_views.change_password, name="change_password"),
    path("settings/keys/", key_views.create_key, name="create_key"),
    path("settings/keys/<int:pk>/", key_views.edit_key, name="edit_key"),
    path("settings/keys/<int:pk>/revoke/", key_views.revoke_key, name="revoke_key"),
    path("settings/keys/<int:pk>/restore/", key_views.restore_key, name="restore_key"),
    path("settings/devices/sign-out/", account_views.sign_out_others, name="sign_out_others"),
    path("settings/appearance/", account_views.set_appearance, name="set_appearance"),
    path("settings/people/", people_views.index, name="people"),
    path("settings/people/<int:pk>/link/", people_views.link, name="person_link"),
    path("settings/people/<int:pk>/remove/", people_views.remove, name="remove_person"),
    path("settings/people/<int:pk>/limits/", people_views.limit, name="person_limits"),
    *(
        path(
            f"settings/people/<int:pk>/{what}/",
            people_views.change,
            {"what": what},
            name=f"person_{what}",
        )
        for what in ("admin", "member", "enable", "disable")
    ),
]
