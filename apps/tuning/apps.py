from django.apps import AppConfig


class TuningConfig(AppConfig):
    name = "apps.tuning"
