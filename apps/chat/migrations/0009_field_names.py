"""Gives fields the words of the field. An index over a renamed field is made anew."""

from django.db import migrations, models

STATES = [
    ("waiting", "Waiting for approval"),
    ("running", "Running"),
    ("done", "Done"),
    ("failed", "Failed"),
    ("refused", "Denied"),
    ("expired", "No response"),
    ("stopped", "Stopped"),
]
RENAMED = [
    ("conversation", "removed", "deleted_at"),
    ("message", "removed", "deleted_at"),
    ("message", "kept_from", "cut_before_message"),
    ("message", "lost_tokens", "reprocessed_tokens"),
    ("message", "lost_reason", "reprocessed_reason"),
    ("message", "prompt_head", "prompt_prefix"),
    ("preferences", "reads_ahead", "prefill_drafts"),
]


def _index_of_deleted(model: str) -> migrations.AddIndex:
    return migrations.AddIndex(
        model_name=model,
        index=models.Index(
            fields=["deleted_at"],
            condition=models.Q(deleted_at__isnull=False),
            name=f"chat_{model}_deleted",
        ),
    )


class Migration(migrations.Migration):
    dependencies = [("chat", "0008_preferences")]

    operations = [
        migrations.RemoveIndex(model_name="conversation", name="chat_conversation_removed"),
        migrations.RemoveIndex(model_name="message", name="chat_message_removed"),
        *(
            migrations.RenameField(model_name=model, old_name=old, new_name=new)
            for model, old, new in RENAMED
        ),
        _index_of_deleted("conversation"),
        _index_of_deleted("message"),
        migrations.AlterField(
            model_name="toolcall",
            name="state",
            field=models.CharField(choices=STATES, default="running", max_length=10),
        ),
    ]
