from django.apps import AppConfig


class BatchConfig(AppConfig):
    name = "apps.batch"
