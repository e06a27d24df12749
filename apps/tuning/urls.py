from django.urls import path

from apps.tuning.views import doctor, measure, plan

app_name = "tuning"
urlpatterns = [
    path("plan/", plan.plan, name="plan"),
    path("<int:pk>/doctor/", doctor.doctor, name="doctor"),
    path("<int:pk>/measure/", measure.measure, name="measure"),
]
