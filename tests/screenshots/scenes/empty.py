"""Pages on which nothing is yet: of a new workbench, and of what has just begun."""

from tests.screenshots.scene import Scene

# Of a workbench in which nobody has done anything.
NEW = (
    Scene("first-page", "/"),
    Scene("chat-new-empty", "/chat/"),
    Scene("prompts-empty", "/chat/prompts/"),
    Scene("presets-empty", "/settings/presets/"),
    Scene("settings-empty", "/settings/#keys"),
    Scene("datasets-empty", "/datasets/"),
    Scene("classifiers-empty", "/classify/"),
    Scene("classifier-new-empty", "/classify/new/"),
    Scene("jobs-empty", "/generate/"),
    Scene("job-new-empty", "/generate/new/"),
    Scene("recipes-empty", "/generate/recipes/"),
    Scene("servers-empty", "/servers/"),
    Scene("server-history-empty", "/servers/1/history/?span=hour"),
    Scene("examine-server-empty", "/servers/1/doctor/"),
    Scene("measure-server-empty", "/servers/1/measure/"),
    Scene("plan-server-empty", "/servers/plan/"),
    Scene("usage-empty", "/servers/usage/"),
    Scene("tools-empty", "/tools/"),
)

# Of what has begun and has nothing yet.
BEGUN = (
    Scene("project-empty", "/chat/projects/{empty_project}/"),
    Scene("recipe-editor-empty", "/generate/new/?recipe=blank"),
    Scene("job-empty", "/generate/{waiting_job}/"),
    Scene("job-quality-empty", "/generate/{waiting_job}/quality/"),
    Scene("job-use-empty", "/generate/{waiting_job}/use/"),
    Scene("job-cards-empty", "/generate/{waiting_job}/cards/"),
    Scene("job-review-empty", "/generate/{waiting_job}/review/"),
    Scene("dataset-empty", "/datasets/{dataset}/?q=no+such+words"),
    Scene("dataset-near-empty", "/datasets/{unlabelled}/near/"),
    Scene("dataset-label-empty", "/datasets/{dataset}/label/"),
)
