from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.urls import reverse

from apps.datasets.models import Dataset


class _DatasetChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in the stubs alone
    def label_from_instance(self, obj: Dataset) -> str:
        return f"{obj.name} ({obj.rows:,} rows, {len(obj.label_counts):,} labels)"


class ClassifierForm(forms.Form):
    name = forms.CharField(max_length=200)
    dataset = _DatasetChoice(queryset=Dataset.objects.none(), label="Trained on", empty_label=None)
    test_dataset = _DatasetChoice(
        queryset=Dataset.objects.none(),
        label="Test set",
        required=False,
        empty_label="Rows marked “test” or “validation”, else a fifth held out",
        help_text=(
            "Rows that are never used for training. A fixed test set makes versions comparable."
        ),
    )
    balanced = forms.BooleanField(
        required=False,
        label="Balance label weights",
        help_text="Finds more rare labels (higher recall), with more false positives.",
    )

    rare_labels = forms.ChoiceField(
        required=False,
        label="Rare labels",
        choices=[
            ("leave_out", "Leave out"),
            ("pool", "Pool as “other”"),
            ("fail", "Stop the training"),
        ],
        help_text="The run lists them.",
    )
    rare_below = forms.IntegerField(
        required=False,
        min_value=2,
        max_value=1000,
        initial=2,
        label="Rare below",
        help_text="Different training texts a label needs.",
    )
    train_oos = forms.BooleanField(
        required=False,
        label="Train “oos” as an ordinary label",
        help_text="Otherwise rows labelled oos or out of scope show what belongs to no label.",
    )

    # Not `prefix`: that is what a form of Django calls the start of its fields' names.
    text_prefix = forms.CharField(
        required=False,
        max_length=200,
        strip=False,
        label="Text prefix",
        help_text=(
            "Required by some models, such as “query: ” for e5 or “classification: ” for nomic."
        ),
    )
    dimensions = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value="0",
        choices=[(0, "All"), *((size, f"First {size}") for size in (64, 128, 256, 512, 768))],
        label="Embedding dimensions",
        help_text="Reduce only for Matryoshka models.",
    )
    long_texts = forms.ChoiceField(
        required=False,
        label="Texts longer than the model’s limit",
        choices=[
            ("reject", "Skip and list them"),
            ("cut", "Truncate and list them"),
            ("mean", "Average their parts and list them"),
        ],
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mine = Dataset.objects.owned_by(user)
        for name in ("dataset", "test_dataset"):
            field = self.fields[name]
            assert isinstance(field, _DatasetChoice)
            field.queryset = mine
        # The checklist beside the form is that of the chosen dataset.
        self.fields["dataset"].widget.attrs |= {
            "hx-get": reverse("classifiers:checks"),
            "hx-trigger": "change",
            "hx-target": "#checks",
            "hx-swap": "outerHTML",
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("dataset") is not None and data.get("dataset") == data.get("test_dataset"):
            raise ValidationError(
                {"test_dataset": "Choose a test set other than the training dataset."}
            )
        return data
