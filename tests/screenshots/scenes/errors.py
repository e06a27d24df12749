"""Pages on which something is wrong: a refused form, a run that failed, a server that is away."""

from playwright.sync_api import Page

from tests.screenshots.scene import Scene, send, upload


def log_in_wrongly(page: Page) -> None:
    page.get_by_label("Username").fill("anna")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Wrong username").wait_for()  # hashing takes its time


NO_FILE = b"\x00\x01 this is no such file"

# While the default server does not answer.
AWAY = (
    Scene("chat-new-error", "/chat/#new"),
    Scene("chat-error", "{failed_chat}"),
)

ERRORS = (
    Scene("login-error", "/login/", log_in_wrongly, anonymous=True),
    Scene("login-link-error", "/login/link/used-before/", anonymous=True),
    Scene(
        "settings-error",
        "/settings/",
        send(new_password1="a", new_password2="b"),
    ),
    Scene("remove-person-error", "/settings/people/{person}/remove/", send(name="somebody else")),
    Scene("preset-new-error", "/settings/presets/new/", send(name="", temperature="9")),
    Scene("prompts-error", "/chat/prompts/", send(name="", text="Translate {{text")),
    Scene("project-new-error", "/chat/projects/", send(name=" ")),
    Scene("project-error", "/chat/projects/{broken_project}/"),
    Scene(
        "chat-import-error",
        "/chat/import/",
        upload("input[name=file]", "chats.json", NO_FILE, "Import"),
    ),
    Scene("chat-shared-error", "/chat/shared/00000000-0000-4000-8000-000000000000/"),
    Scene(
        "dataset-new-error",
        "/datasets/new/",
        upload("input[type=file]", "questions.xlsx", NO_FILE),
    ),
    Scene("dataset-import-error", "{bad_upload}"),
    Scene("classifier-new-error", "/classify/new/?dataset={one_label}"),
    Scene(
        "classifier-import-error",
        "/classify/import/",
        upload("input[name=file]", "classifier.json", NO_FILE, "Import classifier"),
    ),
    Scene("classifier-error", "/classify/{failed_classifier}/"),
    Scene("job-error", "/generate/{failed_job}/rows/"),
    Scene("job-quality-error", "/generate/{failed_job}/quality/"),
    Scene("job-use-error", "/generate/{failed_job}/use/"),
    Scene("job-cards-error", "/generate/{failed_job}/cards/"),
    Scene("job-row-error", "/generate/{failed_job}/rows/0/"),
    Scene("recipe-editor-error", "/generate/new/?recipe=chat", send(name="", rows="0")),
    Scene("servers-error", "/servers/#server-{laptop}"),
    Scene("server-error", "/servers/{laptop}/", send(base_url="http://256.256.256.256/v1")),
    Scene("server-history-error", "/servers/{laptop}/history/?span=hour"),
    Scene("examine-server-error", "/servers/{laptop}/doctor/"),
    Scene("plan-server-error", "/servers/plan/", send(slots="0", context="-1")),
    Scene("measure-server-error", "/servers/{laptop}/measure/"),
    Scene("tools-error", "/tools/", send(name="", url="localhost")),
    Scene("tool-server-error", "/tools/{tool}/", send(name="")),
    Scene("not-found-error", "/chat/999999/"),
)
