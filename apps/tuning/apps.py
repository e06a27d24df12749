from django.apps import AppConfig


class TuningConfig(AppConfig):
    name = "apps.tuning"

    def ready(self) -> None:
        from apps.tuning.runs.task_kind import SWEEP
        from apps.work.services import register

        register(SWEEP, "apps.tuning.runs.run_sweep.run_sweep")
