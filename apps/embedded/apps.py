from django.apps import AppConfig


class EmbeddedConfig(AppConfig):
    name = "apps.embedded"

    def ready(self) -> None:
        from apps.embedded.processes.trial_server import can_try, trial_server
        from apps.tuning.machine_hooks import TrialServers, register_trial_servers

        register_trial_servers(TrialServers(can_try, trial_server))
