from django.urls import path

from apps.tuning.views import plan

app_name = "tuning"
urlpatterns = [
    path("", plan.plan, name="plan"),
]
