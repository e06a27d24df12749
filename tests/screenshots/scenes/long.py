"""Pages with more than fits: long lists, long names without spaces, long texts."""

from tests.screenshots.samples.crowd import LONG_TEXT
from tests.screenshots.scene import Scene, write

_TABS = ("thresholds", "improve", "map", "versions", "export", "files")

LONG = (
    Scene("settings-long", "/settings/#people"),
    Scene("presets-long", "/settings/presets/"),
    Scene("preset-long", "/settings/presets/{long_preset}/"),
    Scene("chat-new-long", "/chat/#new", write(LONG_TEXT)),
    Scene("chat-long", "{long_chat}"),
    Scene("prompts-long", "/chat/prompts/"),
    Scene("project-long", "/chat/projects/{long_project}/"),
    Scene("document-long", "{long_document}"),
    Scene("chat-shared-long", "{long_shared}"),
    Scene("datasets-long", "/datasets/"),
    Scene("dataset-import-long", "{wide_upload}"),
    Scene("dataset-long", "/datasets/{long_dataset}/"),
    Scene("dataset-label-long", "/datasets/{long_dataset}/label/"),
    Scene("dataset-history-long", "/datasets/{long_dataset}/history/"),
    Scene("classifiers-long", "/classify/"),
    Scene("classifier-new-long", "/classify/new/?dataset={long_dataset}"),
    Scene("classifier-long", "/classify/{long_classifier}/"),
    *(Scene(f"classifier-{tab}-long", f"/classify/{{long_classifier}}/{tab}/") for tab in _TABS),
    Scene("recipe-editor-long", "/generate/new/?like={wide_job}"),
    Scene("recipes-long", "/generate/recipes/"),
    Scene("job-long", "/generate/{long_job}/rows/"),
    Scene("job-quality-long", "/generate/{long_job}/quality/"),
    Scene("job-recipe-long", "/generate/{long_job}/recipe/"),
    Scene("job-cards-long", "/generate/{long_job}/cards/"),
    Scene("job-review-long", "/generate/{long_job}/review/"),
    Scene("job-row-long", "/generate/{long_job}/rows/0/"),
    Scene("servers-long", "/servers/"),
    Scene("tools-long", "/tools/"),
)
