from django.apps import AppConfig


class ServersConfig(AppConfig):
    name = "apps.servers"
    label = "llm"  # of the tables, which are older than this package

    def ready(self) -> None:
        from apps.servers.loading.task_kind import MODEL_ACTION
        from apps.work import services as work  # models are there only now

        work.register(MODEL_ACTION, "apps.servers.loading.run_action.run_model_action")
