from django.apps import AppConfig


class TuningConfig(AppConfig):
    name = "apps.tuning"

    def ready(self) -> None:
        from apps.servers.services import register_findings
        from apps.tuning.doctor.known_faults import known_faults
        from apps.tuning.runs.task_kind import DOCTOR, SWEEP
        from apps.work.services import register

        register_findings(known_faults)
        register(SWEEP, "apps.tuning.runs.run_sweep.run_sweep")
        register(DOCTOR, "apps.tuning.runs.run_doctor.run_doctor")
