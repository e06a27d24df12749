from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from apps.datasets.models import Dataset


class _DatasetChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in the stubs alone
    def label_from_instance(self, obj: Dataset) -> str:
        return f"{obj.name} ({obj.rows:,} rows, {len(obj.label_counts):,} labels)"


class ClassifierForm(forms.Form):
    name = forms.CharField(max_length=200)
    dataset = _DatasetChoice(queryset=Dataset.objects.none(), label="Trained on", empty_label=None)
    test_dataset = _DatasetChoice(
        queryset=Dataset.objects.none(),
        label="Judged on",
        required=False,
        empty_label="Rows marked “test” or “validation”, else a fifth held out",
        help_text="Rows it never sees in training. A test set of your own compares runs best.",
    )
    balanced = forms.BooleanField(
        required=False,
        label="Give rare labels as much weight as common ones",
        help_text="Finds more of the rare labels, and is wrong about them more often.",
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
        label="Prefix of every text",
        help_text="Some models want one: “query: ” for e5, “classification: ” for nomic.",
    )
    dimensions = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value="0",
        choices=[(0, "all"), *((size, f"the first {size}") for size in (64, 128, 256, 512, 768))],
        label="Numbers kept of each vector",
        help_text="Fewer only for models trained for it (Matryoshka).",
    )
    long_texts = forms.ChoiceField(
        required=False,
        label="Texts too long for the model",
        choices=[
            ("reject", "leave out, and list them"),
            ("cut", "use their beginning, and list them"),
            ("mean", "use the mean of their parts, and list them"),
        ],
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mine = Dataset.objects.owned_by(user)
        for name in ("dataset", "test_dataset"):
            field = self.fields[name]
            assert isinstance(field, _DatasetChoice)
            field.queryset = mine

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("dataset") is not None and data.get("dataset") == data.get("test_dataset"):
            raise ValidationError(
                {"test_dataset": "A classifier cannot be judged on the rows it was trained on."}
            )
        return data
