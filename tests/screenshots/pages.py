"""Every page and its states; of a state without a picture, the reason.

`/work/...` pages are found by their routes: tests/journeys/every_page fails for one not listed.
"""

from dataclasses import dataclass

from tests.screenshots.state import State

FORM = "A form: typical shows it empty"
SHORT = "Its length does not depend on data"
ONE = "One thing, which exists"
ELSEWHERE = "Its changes fail on other pages"
UNTRAINED = "No page before the first version"
SAME = "As settings"
NO_ALERT = "Faults become alerts after minutes"


@dataclass(frozen=True)
class Listed:
    name: str
    """What its pictures are called."""
    route: str
    """The pattern of its address."""
    empty: str = ""
    long: str = ""
    error: str = ""
    typical: str = ""
    """The reason why there is no such picture; "" if there is one."""
    also: str = ""
    """Another address at which it stands."""

    def reason(self, state: State) -> str:
        return {
            State.EMPTY: self.empty,
            State.TYPICAL: self.typical,
            State.LONG: self.long,
            State.ERROR: self.error,
        }[state]


PAGES = (
    Listed("first-page", "", "Typical: shown while nothing is there", SHORT, ELSEWHERE),
    Listed("login", "login/", FORM, SHORT),
    Listed("login-link", "login/link/<str:token>/", FORM, SHORT),
    Listed("settings", "settings/", also="settings/people/"),
    Listed("settings-keys", "settings/keys/", FORM, SAME, SAME),
    Listed("remove-person", "settings/people/<int:pk>/remove/", FORM, SHORT),
    Listed("presets", "settings/presets/", error=ELSEWHERE),
    Listed("preset-new", "settings/presets/new/", FORM, "As preset"),
    Listed("preset", "settings/presets/<int:pk>/", ONE, error="As preset-new"),
    Listed("chat-new", "chat/"),
    Listed("chat-new-temporary", "chat/", "As chat-new", "As chat-new", "As chat-new"),
    Listed("chat-temporary", "chat/<int:pk>/", "As chat", "As chat", "As chat"),
    Listed("chat", "chat/<int:pk>/", "As chat-new: the first message makes a chat"),
    Listed("prompts", "chat/prompts/"),
    Listed("project-new", "chat/projects/", FORM, SHORT),
    Listed("project", "chat/projects/<int:pk>/"),
    Listed(
        "document", "chat/documents/<int:pk>/", ONE, error="As project: a failed one has no page"
    ),
    Listed("chat-import", "chat/import/", FORM, SHORT),
    Listed("chat-shared", "chat/shared/<uuid:token>/", "An empty chat cannot be shared"),
    Listed("datasets", "datasets/", error=ELSEWHERE),
    Listed("dataset-new", "datasets/new/", FORM, SHORT),
    Listed("dataset-import", "datasets/uploads/<uuid:pk>/", "A file without rows is refused"),
    Listed("dataset", "datasets/<int:pk>/", error="As dataset-import: rejected rows are listed"),
    Listed("dataset-label", "datasets/<int:pk>/label/", error=ELSEWHERE),
    Listed(
        "dataset-history",
        "datasets/<int:pk>/history/",
        "The import is its first entry",
        error=ELSEWHERE,
    ),
    Listed("dataset-near", "datasets/<int:pk>/near/", long="As dataset", error=ELSEWHERE),
    Listed("classifiers", "classify/", error="In the list of long: failed ones"),
    Listed("classifier-new", "classify/new/"),
    Listed("classifier-import", "classify/import/", FORM, SHORT),
    Listed("classifier", "classify/<int:pk>/", UNTRAINED),
    Listed("classifier-thresholds", "classify/<int:pk>/thresholds/", UNTRAINED, error=UNTRAINED),
    Listed("classifier-improve", "classify/<int:pk>/improve/", UNTRAINED, error=UNTRAINED),
    Listed("classifier-map", "classify/<int:pk>/map/", UNTRAINED, error=UNTRAINED),
    Listed(
        "classifier-copies",
        "classify/<int:pk>/copies/",
        "Typical: none found",
        "As dataset",
        UNTRAINED,
    ),
    Listed("classifier-versions", "classify/<int:pk>/versions/", UNTRAINED, error="As classifier"),
    Listed("classifier-chat", "classify/<int:pk>/chat/", FORM, "As jobs", ELSEWHERE),
    Listed("classifier-export", "classify/<int:pk>/export/", UNTRAINED, error=UNTRAINED),
    Listed("classifier-files", "classify/<int:pk>/files/", FORM, error=ELSEWHERE),
    Listed(
        "jobs",
        "generate/",
        long="Its list, as beside job-long",
        error="In its list: the failed job",
    ),
    Listed("job-new", "generate/new/", long=SHORT, error="As recipe-editor"),
    Listed("recipe-editor", "generate/new/"),
    Listed("recipes", "generate/recipes/", error=ELSEWHERE),
    Listed("recipe", "generate/recipes/<int:pk>/", ONE, "As job-recipe", ELSEWHERE),
    Listed("job", "generate/<int:pk>/rows/", also="generate/<int:pk>/"),
    Listed("job-quality", "generate/<int:pk>/quality/"),
    Listed("job-use", "generate/<int:pk>/use/", long=SHORT),
    Listed("job-recipe", "generate/<int:pk>/recipe/", "A job has a recipe", error=ELSEWHERE),
    Listed("job-cards", "generate/<int:pk>/cards/"),
    Listed("job-review", "generate/<int:pk>/review/", error="As job-cards"),
    Listed("job-row", "generate/<int:pk>/rows/<int:index>/", ONE),
    Listed("servers", "servers/"),
    Listed("server", "servers/<int:pk>/", ONE, SHORT),
    Listed("server-history", "servers/<int:pk>/history/", long=SHORT),
    Listed(
        "server-alerts", "servers/alerts/", "Typical: no alert", "Takes days of faults", NO_ALERT
    ),
    Listed("examine-server", "servers/<int:pk>/doctor/", long=SHORT),
    Listed("measure-server", "servers/<int:pk>/measure/", long=SHORT),
    Listed("plan-server", "servers/plan/", long=SHORT),
    Listed("connect-program", "servers/connect/", ONE, SHORT, ELSEWHERE),
    Listed("usage", "servers/usage/", long="A row a day", error=ELSEWHERE),
    Listed("batch", "servers/batches/<int:pk>/", ONE, SHORT, "As job"),
    Listed("tools", "tools/"),
    Listed("tool-server", "tools/<int:pk>/", ONE, SHORT),
    Listed("api-docs", "api/v1/docs", ONE, "Typical is long", ELSEWHERE),
    Listed(
        "not-found",
        "chat/<int:pk>/",
        "The page of any address without one",
        SHORT,
        typical="An error in itself",
    ),
)

ROUTES = {route for page in PAGES for route in (page.route, page.also)}
