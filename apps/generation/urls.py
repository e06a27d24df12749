from django.urls import path

from apps.generation import card_views, editor_views, near_views, review_views, views

app_name = "generation"
urlpatterns = [
    path("", views.index, name="index"),
    path("new/", editor_views.new, name="new"),
    path("preview/", editor_views.preview, name="preview"),
    path("check/", editor_views.check, name="check"),
    path("personas/", editor_views.write_personas, name="personas"),
    path("recipes/<int:pk>/delete/", editor_views.forget_recipe, name="forget_recipe"),
    path("<int:pk>/", views.job, name="job"),
    path("<int:pk>/progress/", views.progress, name="progress"),
    path("<int:pk>/course/", views.course, name="course"),
    path("<int:pk>/rows/", views.rows, name="rows"),
    path("<int:pk>/rows/<int:index>/", views.row, name="row"),
    path("<int:pk>/review/", review_views.page, name="review"),
    path("<int:pk>/review/<int:index>/", review_views.judge, name="judge"),
    path("<int:pk>/cards/", card_views.page, name="cards"),
    path("<int:pk>/cards/<int:index>/", card_views.card, name="one_card"),
    path("<int:pk>/cards/<int:index>/judge/", card_views.judge, name="judge_card"),
    path("<int:pk>/diversity/", review_views.varied, name="diversity"),
    path("<int:pk>/near/", near_views.measured, name="near"),
    path("<int:pk>/near/apply/", near_views.apply, name="near_apply"),
    path("<int:pk>/export/", views.export, name="export"),
    path("<int:pk>/card/", views.card, name="card"),
    path("<int:pk>/dataset/", views.dataset, name="dataset"),
    path("<int:pk>/add-to-dataset/", views.add_to_dataset, name="add_to_dataset"),
    path("<int:pk>/compare/", views.compare, name="compare"),
    path("<int:pk>/add-rows/", views.add_rows, name="add_rows"),
    path("<int:pk>/duplicate/", views.duplicate, name="duplicate"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/limits/", views.limits, name="limits"),
    path("<int:pk>/<str:action>/", views.act, name="act"),
]
