"""Facts about a recipe while its columns are read in order (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationInfo

from apps.generation.recipe.columns.base import Column
from apps.generation.recipe.columns.choices import Choice
from apps.generation.recipe.columns.written import Answer, Structured, Written
from apps.generation.recipe.problems import Problem, RecipeError

VALUES_LISTED = 5


def context_of(info: ValidationInfo) -> "ParseContext":
    assert isinstance(info.context, ParseContext)  # `parse` sets it
    return info.context


@dataclass
class ParseContext:
    """The context of a validation."""

    rows: int | None = None
    """Rows of the job, to compare the quotas with."""
    is_new: bool = True
    """False for a stored recipe: it may contradict itself, its job can still be opened."""
    columns: list[Column] = field(default_factory=list)
    complete: bool = True
    """False after a column that could not be read: its names are missing."""

    def names(self) -> list[str] | None:
        """The names that a template may use; None where some are missing."""
        if not self.complete:
            return None
        return list(dict.fromkeys(name for column in self.columns for name in column.names))

    @property
    def has_request(self) -> bool:
        """True if a column asks the model, or may have done so had it been readable."""
        return not self.complete or any(isinstance(column, Written) for column in self.columns)

    def add(self, column: Column) -> None:
        """Adds the next column.

        Raises:
            RecipeError: it does not fit the earlier ones.
        """
        self._check_unique(column)
        self.columns.append(column)
        if isinstance(column, Written):
            self._check_checks(column)
        if self.is_new and isinstance(column, Choice) and column.depends_on:
            self._check_branches(column)

    def _check_unique(self, column: Column) -> None:
        taken = {name: known for known in self.columns for name in known.names}
        for name in column.names:
            # The model may repeat in its answer what it was asked for: the label, for instance.
            repeats = isinstance(column, Structured | Answer) and isinstance(
                taken.get(name), Choice
            )
            if name in taken and not repeats:
                message = f"Two columns are named “{name}”. Rename one."
                if name != column.name:
                    message = f"Its “{name}” is the name of an earlier column: rename one of them."
                raise RecipeError.one(message)

    def _check_checks(self, column: Written) -> None:
        for check in column.checks:
            if check.field and check.field not in column.names:
                message = f"A check uses the field “{check.field}”, which does not exist."
                raise RecipeError([Problem(("checks",), message)])
            check.check_names(self.names())

    def _check_branches(self, column: Choice) -> None:
        parent = next((known for known in self.columns if known.name == column.depends_on), None)
        if not isinstance(parent, Choice):
            return
        missing = [value for value in parent.values if value not in column.branches]
        unknown = [value for value in column.branches if value not in parent.values]
        if missing:
            hint = f" “{unknown[0]}” is not a value of “{parent.name}”." if unknown else ""
            message = f"No values for {_listed(missing)} of “{parent.name}”.{hint}"
            raise RecipeError([Problem(("values",), message)])


def _listed(values: Sequence[str]) -> str:
    listed = ", ".join(f"“{value}”" for value in values[:VALUES_LISTED])
    more = len(values) - VALUES_LISTED
    return f"{listed} and {more:,} more" if more > 0 else listed
