from django.apps import AppConfig


class McpConfig(AppConfig):
    name = "apps.mcp"
    verbose_name = "Tool servers"

    def ready(self) -> None:
        from apps.core.tools import register_source
        from apps.mcp import tools  # models are loaded only now

        register_source(tools.tools_for)
