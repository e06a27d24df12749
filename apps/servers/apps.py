from django.apps import AppConfig


class ServersConfig(AppConfig):
    name = "apps.servers"
    label = "llm"  # of the tables, which are older than this package
