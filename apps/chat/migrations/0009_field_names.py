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
        migrations.AlterField(
            model_name="conversation",
            name="params",
            field=models.JSONField(blank=True, default=dict, help_text="JSON of SamplingParams."),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="response_format",
            field=models.JSONField(
                blank=True, default=dict, help_text="As in the OpenAI API. Empty: free text."
            ),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="source",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Program and ID it was imported from.",
                max_length=200,
            ),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="tools",
            field=models.JSONField(blank=True, default=dict, help_text="JSON of ToolSettings."),
        ),
        migrations.AlterField(
            model_name="message",
            name="cut_before_message",
            field=models.BigIntegerField(
                blank=True,
                help_text="First message in its prompt if the beginning was cut.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="deleted_at",
            field=models.DateTimeField(
                blank=True,
                help_text="The same for all messages that were deleted together.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="max_tokens",
            field=models.PositiveIntegerField(
                blank=True, help_text="Limit of its last request. Empty: none was sent.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="pinned",
            field=models.BooleanField(
                default=False,
                help_text="Kept in the prompt, with its question or answer, when the beginning is cut.",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="prompt_prefix",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="JSON of PromptPrefix: what its prompt began with.",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="reasoning_ms",
            field=models.FloatField(
                blank=True,
                help_text="Milliseconds from the first reasoning token to the first text token.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="reprocessed_reason",
            field=models.TextField(
                blank=True, default="", help_text="The reason, as the end of a sentence."
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="reprocessed_tokens",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Prompt tokens that the server had processed before, and did again.",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="request",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="JSON of AnswerRequest: options of this answer alone.",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="ttft_ms",
            field=models.FloatField(
                blank=True,
                help_text="Milliseconds from the request to the first token that was not empty.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="preferences",
            name="prefill_drafts",
            field=models.BooleanField(
                default=True, help_text="Send drafts to the model server while they are typed."
            ),
        ),
        migrations.AlterField(
            model_name="share",
            name="messages",
            field=models.JSONField(help_text="List of role, content, reasoning and model."),
        ),
        migrations.AlterField(
            model_name="summary",
            name="text",
            field=models.TextField(
                blank=True, default="", help_text="The summary, or the error if it failed."
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="arguments",
            field=models.TextField(
                help_text="Exactly as the model wrote them: JSON, unless it failed."
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="call_id",
            field=models.CharField(help_text="ID given by the model server.", max_length=200),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="result",
            field=models.TextField(blank=True, default="", help_text="Text that the model reads."),
        ),
    ]
