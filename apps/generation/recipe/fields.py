"""Types of the fields of a recipe's JSON: strict, with one sentence for each mistake (pure).

Pydantic checks type and limits and documents them; `Says` replaces its messages by ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts import templates
from apps.generation.recipe.prompts.names import check_name

MAX_NUMBER = 10**12


@dataclass(frozen=True, slots=True)
class Says:
    """Replaces every error of the type by one sentence.

    Args:
        null: null is a value; else it is an error, also where it is the default.
    """

    sentence: str
    null: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def validate(value: Any, inner: core_schema.ValidatorFunctionWrapHandler) -> Any:
            if value is None and self.null:
                return None
            if value is None:
                raise RecipeError.one(self.sentence)
            try:
                return inner(value)
            except ValidationError as error:
                raise RecipeError.one(self.sentence) from error

        return core_schema.no_info_wrap_validator_function(validate, handler(source))


class Part(BaseModel):
    """An object of a recipe's JSON. Unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_by_name=True,
        validate_by_alias=True,
    )
    NOT_AN_OBJECT: ClassVar[str]
    INTERNAL: ClassVar[frozenset[str]] = frozenset()
    """Fields that JSON does not have."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Documents the names in JSON, also where the caller asks for those in Python."""
        found = handler.resolve_ref_schema(handler(schema))
        names = {name: field.alias or name for name, field in cls.model_fields.items()}
        found["properties"] = {
            names.get(name, name): inner
            for name, inner in found.get("properties", {}).items()
            if name not in cls.INTERNAL
        }
        found["required"] = [names.get(name, name) for name in found.get("required", [])]
        return found

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        """Refuses unknown keys. A missing field is null: its type says what is wrong with that."""
        if not isinstance(data, Mapping):
            raise RecipeError.one(cls.NOT_AN_OBJECT)
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        unknown = [key for key in data if key not in fields or key in cls.INTERNAL]
        problems = [cls.unknown_key(str(key), data) for key in unknown]
        if found := [problem for problem in problems if problem is not None]:
            raise RecipeError(found)
        required = [key for key, field in fields.items() if field.is_required()]
        return {**dict.fromkeys(required), **data}

    @classmethod
    def unknown_key(cls, key: str, data: Mapping[str, Any]) -> Problem | None:
        """The problem of an unknown key. None: reported beside the problems of the other keys."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The keys that were given, by their names in JSON."""
        internal = set(self.INTERNAL)
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=internal)


String = Annotated[StrictStr, Says("Must be a string.")]
Flag = Annotated[StrictBool, Says("Must be true or false.")]
Numeric = Annotated[
    Annotated[StrictInt, Ge(-MAX_NUMBER), Le(MAX_NUMBER)]
    | Annotated[StrictFloat, Ge(-MAX_NUMBER), Le(MAX_NUMBER)],
    Says("Must be a number."),
]


# --- Names, templates and expressions -----------------------------------------


def known_names(info: ValidationInfo) -> list[str] | None:
    """The names of earlier columns; None where an earlier mistake hides some."""
    return None if info.context is None else info.context.names()


def _with_names(check: Callable[[str, list[str] | None], None]) -> Any:
    def validate(source: str, info: ValidationInfo) -> str:
        check(source, known_names(info))
        return source

    return AfterValidator(validate)


def valid_name(name: str) -> str:
    check_name(name)
    return name


def _check_condition(source: str, info: ValidationInfo) -> str:
    source = source.strip()
    if source:
        templates.check_expression(source, known_names(info))
    return source


def _check_earlier(name: str, info: ValidationInfo) -> str:
    names = known_names(info)
    if name and names is not None and name not in names:
        above = ", ".join(names) or "none"
        raise RecipeError.one(f"No column “{name}” above this one. Columns above: {above}.")
    return name


def _check_prompt(source: Any, info: ValidationInfo) -> str:
    if not source.strip():
        raise RecipeError.one(NO_PROMPT)
    templates.check(source, known_names(info))
    return str(source)


NO_NAME = "A column needs a name, a type and the settings of that type."
NO_PROMPT = "Enter a prompt: what should the model write for each row?"
Name = Annotated[StrictStr, Says(NO_NAME), AfterValidator(valid_name)]
EarlierName = Annotated[String, AfterValidator(_check_earlier)]
"""The name of an earlier column; empty for none."""
Condition = Annotated[String, AfterValidator(_check_condition)]
Prompt = Annotated[StrictStr, Says(NO_PROMPT), AfterValidator(_check_prompt)]
ExpressionText = Annotated[
    StrictStr,
    Says("The expression is empty."),
    AfterValidator(str.strip),
    _with_names(templates.check_expression),
]
