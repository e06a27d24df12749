from django.urls import path

from apps.generation.views import editor, job_actions, job_exports, jobs, preview
from apps.generation.views.row_review import cards, diversity, review, thresholds

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
    path("<int:pk>/course/", jobs.throughput, name="throughput"),
    path("<int:pk>/rows/", jobs.rows, name="rows"),
    path("<int:pk>/rows/<int:index>/", jobs.row, name="row"),
    path("<int:pk>/review/", review.page, name="review"),
    path("<int:pk>/review/<int:index>/", review.judge, name="review_row"),
    path("<int:pk>/cards/", cards.page, name="cards"),
    path("<int:pk>/cards/<int:index>/", cards.card, name="row_card"),
    path("<int:pk>/cards/<int:index>/judge/", cards.judge, name="review_card"),
    path("<int:pk>/diversity/", diversity.show_diversity, name="diversity"),
    path("<int:pk>/near/", thresholds.measured, name="near_duplicates"),
    path("<int:pk>/near/apply/", thresholds.apply, name="apply_threshold"),
    path("<int:pk>/export/", job_exports.export, name="export"),
    path("<int:pk>/card/", job_exports.card, name="data_card"),
    path("<int:pk>/dataset/", job_exports.dataset, name="dataset"),
    path("<int:pk>/add-to-dataset/", job_exports.add_to_dataset, name="add_to_dataset"),
    path("<int:pk>/compare/", job_exports.compare, name="compare"),
    path("<int:pk>/add-rows/", job_actions.add_rows, name="add_rows"),
    path("<int:pk>/duplicate/", job_actions.duplicate, name="duplicate"),
    path("<int:pk>/delete/", job_actions.delete, name="delete"),
    path("<int:pk>/limits/", job_actions.limits, name="limits"),
    path("<int:pk>/<str:action>/", job_actions.act, name="job_action"),
]
