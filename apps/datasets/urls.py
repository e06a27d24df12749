from django.urls import path

from apps.datasets import views

app_name = "datasets"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", views.new, name="new"),
    path("example/", views.create_example, name="example"),
    path("uploads/<uuid:pk>/", views.upload, name="upload"),
    path("uploads/<uuid:pk>/discard/", views.discard_upload, name="discard_upload"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/examples/", views.examples, name="examples"),
    path("<int:pk>/export/<str:form>/", views.export, name="export"),
    path("<int:pk>/delete/", views.delete, name="delete"),
]
