from django.urls import path

from apps.generation.views import editor, job_actions, job_exports, jobs, preview, recipes
from apps.generation.views.job_page import judge_rows, rows, tabs
from apps.generation.views.row_review import cards, diversity, review, thresholds

app_name = "generation"
urlpatterns = [
    path("", jobs.index, name="index"),
    path("new/", editor.new, name="new"),
    path("example/", jobs.start_example, name="start_example"),
    path("preview/", preview.preview, name="preview"),
    path("check/", editor.check, name="check"),
    path("personas/", preview.write_personas, name="personas"),
    path("recipes/", recipes.index, name="recipes"),
    path("recipes/<int:pk>/", recipes.saved_recipe, name="saved_recipe"),
    path("recipes/<int:pk>/rename/", recipes.rename, name="rename_recipe"),
    path("recipes/<int:pk>/delete/", recipes.delete, name="delete_recipe"),
    path("<int:pk>/", tabs.job, name="job"),
    path("<int:pk>/progress/", tabs.progress, name="progress"),
    path("<int:pk>/course/", jobs.throughput, name="throughput"),
    path("<int:pk>/rows/", tabs.rows, name="rows"),
    path("<int:pk>/quality/", tabs.quality, name="quality"),
    path("<int:pk>/use/", tabs.use, name="use"),
    path("<int:pk>/recipe/", tabs.recipe, name="recipe"),
    path("<int:pk>/rows/judge/", judge_rows.judge_rows, name="judge_rows"),
    path("<int:pk>/rows/export/", judge_rows.export_rows, name="export_rows"),
    path("<int:pk>/rows/new/", rows.new_rows, name="new_rows"),
    path("<int:pk>/rows/<int:index>/", rows.row, name="row"),
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
