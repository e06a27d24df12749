"""The errors of the form of a new job, each at its field or its column."""

from dataclasses import dataclass, field
from typing import Any

from apps.generation.recipe.problems import Problem, RecipeError

# Those with a field of their own; all others stay in the recipe's JSON.
PARAMS = ("temperature", "min_p", "max_tokens", "thinking")
# Every field with a place for a sentence: a fragment fills some and empties the others.
ERROR_PLACES = (
    *("name", "target", "system", "columns", "quotas", "rows", "seed", "near", "meaning"),
    *("test_dataset", "width", "weight", "daily_tokens"),
    *PARAMS,
)


class FieldErrors(dict[str, str]):
    """Sentences by the name of the field on the page; "" for a field without an error."""

    def __missing__(self, name: str) -> str:
        return ""


@dataclass
class FormErrors:
    errors: FieldErrors = field(default_factory=FieldErrors)
    problems: list[Problem] = field(default_factory=list)
    """Of the columns, with their places."""

    def report(self, problem: Problem) -> None:
        """Puts a problem at its column, or at a field of the form."""
        first = str(problem.place[0]) if problem.place else "columns"
        if first == "columns" and len(problem.place) > 1:
            self.problems.append(problem)
        elif first == "params" and len(problem.place) > 1:
            name = str(problem.place[1])
            if name in PARAMS:
                self.report_field(name, problem.message)
            else:  # without a field: it is in the JSON of the columns
                self.report_field("columns", f"Parameter {name}: {problem.message}")
        else:
            known = {"prompt": "columns", "params": "columns"}
            self.report_field(known.get(first, first), problem.message)

    def report_all(self, error: RecipeError) -> None:
        for problem in error.problems:
            self.report(problem)

    def problem_places(self) -> list[tuple[str, str]]:
        """Place and sentence of each problem of a column."""
        return [(".".join(map(str, found.place)), found.message) for found in self.problems]

    def feedback(self) -> dict[str, Any]:
        """The context of a fragment that updates the form's errors."""
        return {
            "draft": self,
            "sentences": [(name, self.errors.get(name, "")) for name in ERROR_PLACES],
            "problems": self.problem_places(),
            "marks": (),
        }

    def report_field(self, name: str, sentence: str) -> None:
        self.errors.setdefault(name, sentence)
