from django.urls import path

from apps.generation.views import cards, editor, jobs, preview, review, thresholds

app_name = "generation"
urlpatterns = [
    path("", jobs.index, name="index"),
    path("new/", editor.new, name="new"),
    path("preview/", preview.preview, name="preview"),
    path("check/", editor.check, name="check"),
    path("personas/", preview.write_personas, name="personas"),
    path("recipes/<int:pk>/delete/", editor.delete_saved_recipe, name="delete_recipe"),
    path("<int:pk>/", jobs.job, name="job"),
    path("<int:pk>/progress/", jobs.progress, name="progress"),
    path("<int:pk>/course/", jobs.course, name="throughput"),
    path("<int:pk>/rows/", jobs.rows, name="rows"),
    path("<int:pk>/rows/<int:index>/", jobs.row, name="row"),
    path("<int:pk>/review/", review.page, name="review"),
    path("<int:pk>/review/<int:index>/", review.judge, name="review_row"),
    path("<int:pk>/cards/", cards.page, name="cards"),
    path("<int:pk>/cards/<int:index>/", cards.card, name="row_card"),
    path("<int:pk>/cards/<int:index>/judge/", cards.judge, name="review_card"),
    path("<int:pk>/diversity/", review.varied, name="diversity"),
    path("<int:pk>/near/", thresholds.measured, name="near_duplicates"),
    path("<int:pk>/near/apply/", thresholds.apply, name="apply_threshold"),
    path("<int:pk>/export/", jobs.export, name="export"),
    path("<int:pk>/card/", jobs.card, name="data_card"),
    path("<int:pk>/dataset/", jobs.dataset, name="dataset"),
    path("<int:pk>/add-to-dataset/", jobs.add_to_dataset, name="add_to_dataset"),
    path("<int:pk>/compare/", jobs.compare, name="compare"),
    path("<int:pk>/add-rows/", jobs.add_rows, name="add_rows"),
    path("<int:pk>/duplicate/", jobs.duplicate, name="duplicate"),
    path("<int:pk>/delete/", jobs.delete, name="delete"),
    path("<int:pk>/limits/", jobs.limits, name="limits"),
    path("<int:pk>/<str:action>/", jobs.act, name="job_action"),
]
