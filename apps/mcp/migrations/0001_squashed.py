import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("mcp", "0001_initial"), ("mcp", "0002_own")]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("slug", models.CharField(editable=False, max_length=20)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("http", "Streamable HTTP"),
                            ("stdio", "A command on this machine"),
                        ],
                        default="http",
                        max_length=10,
                    ),
                ),
                ("url", models.CharField(blank=True, default="", max_length=500)),
                (
                    "command",
                    models.TextField(
                        blank=True, default="", help_text="As it is typed in a shell."
                    ),
                ),
                ("encrypted_key", models.TextField(blank=True, default="")),
                (
                    "encrypted_environment",
                    models.TextField(blank=True, default="", help_text="NAME=value lines"),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="name, tool, title, description and parameters of each.",
                    ),
                ),
                (
                    "left_out",
                    models.JSONField(
                        blank=True, default=list, help_text="Sentences: which, and why."
                    ),
                ),
                (
                    "looked",
                    models.DateTimeField(
                        blank=True, help_text="When it told its tools.", null=True
                    ),
                ),
                ("error", models.TextField(blank=True, default="")),
                ("error_since", models.DateTimeField(blank=True, null=True)),
                (
                    "encrypted_headers",
                    models.TextField(blank=True, default="", help_text="Name: value lines"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        editable=False,
                        help_text="Who alone sees and uses it. Empty: everybody does, and staff manages it.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="mcp_own_name"),
                    models.UniqueConstraint(fields=("owner", "slug"), name="mcp_own_slug"),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)),
                        fields=("name",),
                        name="mcp_shared_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)),
                        fields=("slug",),
                        name="mcp_shared_slug",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("owner", None), ("transport", "http"), _connector="OR"),
                        name="mcp_own_is_no_command",
                    ),
                ],
            },
        ),
    ]
