from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "apps.monitoring"

    def ready(self) -> None:
        from apps.core.context import register_news  # models are there only now
        from apps.monitoring.alerts.services import has_open_alert
        from apps.monitoring.gpus.read import read_named_gpus
        from apps.monitoring.history.traffic import read_traffic
        from apps.tuning.hooks import register_traffic
        from apps.tuning.machine_hooks import register_gpus

        register_news("servers:index", has_open_alert)
        register_traffic(read_traffic)
        register_gpus(read_named_gpus)
