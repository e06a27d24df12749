from django.urls import path

from apps.classifiers import views

app_name = "classifiers"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.new, name="new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/progress/", views.progress, name="progress"),
    path("<int:pk>/runs/<int:number>/charts/", views.charts, name="charts"),
    path("<int:pk>/train/", views.train, name="train"),
    path("<int:pk>/cancel/", views.cancel, name="cancel"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/try/", views.try_text, name="try"),
]
