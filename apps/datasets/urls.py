from django.urls import path

from apps.datasets.views import datasets, labelling, rows, uploads

app_name = "datasets"
urlpatterns = [
    path("", datasets.index, name="index"),
    path("new/", uploads.new, name="new"),
    path("example/", datasets.create_example, name="create_example"),
    path("uploads/<uuid:pk>/", uploads.upload, name="upload"),
    path("uploads/<uuid:pk>/progress/", uploads.progress, name="progress"),
    path("uploads/<uuid:pk>/discard/", uploads.discard, name="discard_upload"),
    path("<int:pk>/", datasets.detail, name="detail"),
    path("<int:pk>/summary/", datasets.summary, name="summary"),
    path("<int:pk>/examples/", datasets.examples, name="rows"),
    path("<int:pk>/examples/<int:index>/label/", rows.label, name="label_row"),
    path("<int:pk>/edit/", rows.edit, name="edit"),
    path("<int:pk>/add/", rows.add, name="add"),
    path("<int:pk>/merge/", rows.merge, name="merge"),
    path("<int:pk>/deduplicate/", rows.deduplicate, name="deduplicate"),
    path("<int:pk>/split/", rows.split, name="split"),
    path("<int:pk>/undo/", rows.undo, name="undo"),
    path("<int:pk>/near/", rows.near_copies, name="near_duplicates"),
    path("<int:pk>/label/", labelling.label, name="label"),
    path("<int:pk>/change/", datasets.change, name="pending_change"),
    path("<int:pk>/history/", datasets.history, name="history"),
    path("<int:pk>/rejected/", datasets.rejected, name="rejected"),
    path("<int:pk>/export/<str:form>/", datasets.export, name="export"),
    path("<int:pk>/delete/", datasets.delete, name="delete"),
]
