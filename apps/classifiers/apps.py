from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from apps.core.label_models.label_model import LabelModel, LabelScores
    from apps.datasets.hooks import Guesses, TextLimit
    from apps.datasets.models import Dataset


class ClassifiersConfig(AppConfig):
    name = "apps.classifiers"

    def ready(self) -> None:
        from apps.batch.handlers import Handler, register_handler
        from apps.classifiers.models import TaskKind
        from apps.core.accounts.removal import removing
        from apps.core.first_page import Door, register_door
        from apps.core.label_models.registry import Provider, register_provider
        from apps.datasets import hooks
        from apps.work import services as work

        register_handler(
            "classifiers.chat_labels",
            Handler(
                run_row="apps.classifiers.prediction.chat_labels.label_row",
                read_spec="apps.classifiers.prediction.chat_labels.read_spec",
                row_tokens="apps.classifiers.prediction.chat_labels.row_tokens",
            ),
        )
        work.register(TaskKind.TRAINING, "apps.classifiers.training.run.train")
        work.register(
            TaskKind.FILE_PREDICTION, "apps.classifiers.prediction.file_predictions.predict_file"
        )
        work.register(TaskKind.CONVERSION, "apps.classifiers.transfer.convert_run.convert_run")
        work.register(hooks.NEAR_DUPLICATE_SEARCH, "apps.classifiers.near_duplicate_search.find")
        hooks.register_text_limit(_text_limit)
        hooks.register_trained_on(_is_trained_on)
        hooks.register_guesses(_guess_labels)
        register_provider(
            Provider("classifier/", _list_models, _find_model, _score_text, _server_of)
        )
        removing.connect(_delete_classifiers)
        register_door(Door("classifiers/_first_door.html", _has_begun, _first_card, order=2))
        _offer_tools()


# Imported when they are called: at the start of every process numpy would cost a tenth of a second.
def _is_trained_on(dataset: "Dataset", key: int) -> bool:
    from apps.classifiers.models import Classifier

    mine = Classifier.objects.filter(owner_id=dataset.owner_id)
    return mine.filter(pk=key, dataset=dataset).exists()


def _has_begun(user: Any) -> bool:
    from apps.datasets.models import Dataset

    return Dataset.objects.owned_by(user).exists()


def _first_card(user: Any) -> dict[str, Any]:
    from apps.servers.services import NoServer, Use, default_target

    try:
        default_target(Use.EMBEDDINGS)
    except NoServer as error:
        return {"problem": str(error)}
    return {"problem": ""}


async def _guess_labels(dataset: "Dataset", text: str) -> "Guesses | None":
    from apps.classifiers.prediction.label_guesses import guess_labels

    return await guess_labels(dataset, text)


def _list_models(person: int) -> "list[LabelModel]":
    from apps.classifiers.prediction import label_models

    return label_models.list_models(person)


def _find_model(person: int, name: str) -> "LabelModel | None":
    from apps.classifiers.prediction import label_models

    return label_models.find_model(person, name)


async def _score_text(person: int, model: "LabelModel", text: str, lane: str) -> "LabelScores":
    from apps.classifiers.prediction import label_models

    return await label_models.score_text(person, model, text, lane)


def _server_of(person: int, model: "LabelModel") -> tuple[int, str]:
    from apps.classifiers.prediction import label_models

    return label_models.server_of(person, model)


def _delete_classifiers(person: Any, **kwargs: Any) -> None:
    """Delete a person's classifiers with their files, which no cascade reaches."""
    from apps.classifiers import services
    from apps.classifiers.models import Classifier

    for classifier in Classifier.objects.owned_by(person):
        services.delete_classifier(classifier)


def _text_limit() -> "TextLimit | None":
    from apps.classifiers import near_duplicate_search

    return near_duplicate_search.text_limit()


def _offer_tools() -> None:
    from apps.core.tools import Tool, parameters, register

    register(
        Tool(
            name="classify_text",
            title="Classify with your classifiers",
            description="Gives texts a label with one of this person's own classifiers. A name "
            "that does not exist is answered with those that do.",
            parameters=parameters(
                classifier={"type": "string", "description": "Its name."},
                texts={
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 50,
                },
            ),
            run="apps.classifiers.chat_tools.classify_text",
            seconds=60,
        )
    )
