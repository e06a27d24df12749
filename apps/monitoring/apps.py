from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "apps.monitoring"

    def ready(self) -> None:
        from apps.core.context import register_news  # models are there only now
        from apps.monitoring.alerts.services import has_open_alert

        register_news("servers:index", has_open_alert)
