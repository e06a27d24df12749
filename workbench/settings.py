"""All settings, read once from the environment. Each has a default that works on one machine."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF

from apps.runtime.static_headers import add_static_headers
from workbench import env
from workbench.schedule import BEAT_SCHEDULE

BASE_DIR = Path(__file__).resolve().parent.parent

# Where everything a run creates lives: database, uploads, model files, logs, secrets.
DATA_DIR = Path(env.text("WORKBENCH_DATA", str(BASE_DIR / "var"))).expanduser().resolve()

# --- This site ---------------------------------------------------------------

DEBUG = env.boolean("WORKBENCH_DEBUG")
SECRET_KEY = env.text("WORKBENCH_SECRET_KEY") or env.kept_secret(
    DATA_DIR / "secrets" / "django-key"
)
PORT = env.integer("WORKBENCH_PORT", 8000)
ALLOWED_HOSTS = env.words("WORKBENCH_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("WORKBENCH_ORIGINS", [])
# Where people reach it, for links that are printed: the first origin that is a whole address.
PUBLIC_ORIGIN = next(
    (origin.rstrip("/") for origin in CSRF_TRUSTED_ORIGINS if "*" not in origin), ""
)

# Set it when a proxy in front speaks HTTPS: cookies then travel over HTTPS only.
HTTPS = env.boolean("WORKBENCH_HTTPS")
# Proxies whose X-Forwarded-For is believed: others could choose an address for each guess at a
# password. Our processes start uvicorn without its own trust in this machine.
PROXIES = env.networks("WORKBENCH_PROXIES")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = ["^metrics$"]  # Prometheus asks from beside us, not through the proxy
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

ROOT_URLCONF = "workbench.urls"
ASGI_APPLICATION = "workbench.asgi.application"
LOGIN_URL = "core:login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "core:login"
SESSION_COOKIE_NAME = "workbench_session"
CSRF_COOKIE_NAME = "workbench_csrf"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "ninja",
    "csp",
    "apps.core",
    "apps.work",
    "apps.servers",
    "apps.embeddings",
    "apps.batch",
    "apps.tuning",
    "apps.monitoring",
    "apps.datasets",
    "apps.mcp",
    "apps.chat",
    "apps.classifiers",
    "apps.generation",
    "apps.gateway",
    "apps.embedded",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "apps.core.http.middleware.ContentSecurityPolicy",
    "apps.core.http.middleware.Refusals",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.core.http.middleware.LoginRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.core.context.navigation",
            ],
            "builtins": [
                "apps.core.templatetags.components",
                "apps.core.templatetags.formats",
                "apps.core.templatetags.modules",
            ],
        },
    }
]

# Nothing but our own files may run, style or be fetched: what a model wrote cannot call home.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# --- Database ----------------------------------------------------------------

DATABASES: dict[str, Any] = {
    "default": dj_database_url.parse(
        env.text("DATABASE_URL", f"sqlite:///{DATA_DIR / 'workbench.sqlite3'}")
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Measured with four writing processes: 2,194 transactions a second without one lock error,
    # against 58 with SQLite's defaults. IMMEDIATE, because a read that becomes a write fails at
    # once, whatever the timeout.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # Kept by each thread that has one: opening it and reading the schema costs a small request a
    # third of its time, and closing the last one writes the whole log back. None is held by a
    # request that does nothing with it, see apps/runtime/threads/thread_pool_middleware.py.
    DATABASES["default"]["CONN_MAX_AGE"] = None
    # A file in tests too: an SQLite in memory has locks of its own and no WAL.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # Persistent connections and ASGI do not mix: a pool gives each short transaction one instead.
    DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 0, "max_size": 16, "timeout": 20}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Background work ---------------------------------------------------------

REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")

# Kombu knows a Redis behind a unix socket by another scheme than redis-py does.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE = BEAT_SCHEDULE

# --- Model servers -----------------------------------------------------------

# `manage.py configure_servers` writes these into the database, where a staff user may add more.
LLM_BASE_URL = env.text("LLM_BASE_URL")
LLM_API_KEY = env.text("LLM_API_KEY")
# Whether its slots share one KV cache (no -np, or --kv-unified). The server does not tell.
LLM_KV_UNIFIED = env.optional_boolean("LLM_KV_UNIFIED")
EMBED_BASE_URL = env.text("EMBED_BASE_URL")
EMBED_API_KEY = env.text("EMBED_API_KEY", LLM_API_KEY)
# Certificates of a CA of one's own (PEM), trusted for model servers beside those of the system.
CA_FILE = env.file("WORKBENCH_CA_FILE")

# After a person's last request, and while he types, rows leave a slot free for the next one for so
# many seconds: long enough for a model that calls a tool to go on with what it said. Taking over
# the youngest row's slot costs a question some milliseconds and the job what that row had, a slot
# kept free costs the job all it could have had.
IDLE_AFTER_CHAT_SECONDS = env.seconds("WORKBENCH_IDLE_AFTER_CHAT", 0.3)
# Where only some models fit at once, rows do not push out one that a person used within this time.
KEEP_MODEL_SECONDS = env.integer("WORKBENCH_KEEP_MODEL", 300)

# Whether a conversation's prompt is read ahead on an idle slot while its person types.
READ_AHEAD = env.boolean("WORKBENCH_READ_AHEAD", default=True)

# Bytes of the files in which each model server may keep KV caches (0: none), and the folder of its
# --slot-save-path where it is also one of this machine: evicted files are then deleted.
SLOT_FILES_BYTES = max(0, env.integer("WORKBENCH_SLOT_FILES_GB", 10)) * 1024**3
SLOT_FILES_FOLDER = env.text("WORKBENCH_SLOT_FILES_FOLDER")

# Days after which vectors go: of texts in datasets and jobs counted from their last use, and of
# texts that were only predicted (0: they are not kept). A text can be guessed from its vector.
KEEP_VECTORS_DAYS = max(1, env.integer("WORKBENCH_KEEP_VECTORS_DAYS", 180))
KEEP_PREDICTED_DAYS = max(0, env.integer("WORKBENCH_KEEP_PREDICTED_DAYS", 7))

# Who learns of alerts besides the page: an address that gets JSON, and e-mail addresses.
ALERT_WEBHOOK = env.text("WORKBENCH_ALERT_WEBHOOK")
ALERT_EMAILS = env.words("WORKBENCH_ALERT_EMAILS", [])
EMAIL_HOST = env.text("WORKBENCH_SMTP_HOST", "localhost")
EMAIL_PORT = env.integer("WORKBENCH_SMTP_PORT", 25)
EMAIL_HOST_USER = env.text("WORKBENCH_SMTP_USER")
EMAIL_HOST_PASSWORD = env.text("WORKBENCH_SMTP_PASSWORD")
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = EMAIL_PORT == 587
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("WORKBENCH_SMTP_FROM", "workbench@localhost")

# Whether the model titles conversations, on an idle slot and from the prompt it has read.
TITLES = env.boolean("WORKBENCH_TITLES", default=True)

# Whether models may be given the tool that fetches web pages, and also from private networks.
FETCH_URLS = env.boolean("WORKBENCH_FETCH_URLS", default=False)
FETCH_PRIVATE_URLS = env.boolean("WORKBENCH_FETCH_PRIVATE_URLS", default=False)

# Admins may add MCP servers that are commands. They run as our own user, who can read every key:
# off unless one person starts the workbench for themselves (`make run` sets it).
MCP_COMMANDS = env.boolean("WORKBENCH_MCP_COMMANDS", default=False)
# Their addresses are typed by staff, as those of model servers: they may be in private networks.
MCP_PRIVATE_URLS = env.boolean("WORKBENCH_MCP_PRIVATE_URLS", default=True)
# Whether people may add servers for themselves alone, and whether those that were added are used.
MCP_OWN = env.boolean("WORKBENCH_MCP_OWN", default=True)
# What this machine can reach is not theirs to ask.
MCP_OWN_PRIVATE_URLS = env.boolean("WORKBENCH_MCP_OWN_PRIVATE_URLS", default=False)

# What `manage.py up` serves when no server is named: GGUF files or owner/repo:file.gguf.
CHAT_MODEL = env.text("WORKBENCH_CHAT_MODEL")
# ... with which llama.cpp: a program, "bundled", or the first llama-server on the PATH.
LLAMA_SERVER = env.text("WORKBENCH_LLAMA_SERVER")
CHAT_SLOTS = env.integer("WORKBENCH_CHAT_SLOTS", 4)
CHAT_CONTEXT = env.integer("WORKBENCH_CHAT_CONTEXT", 0)
CHAT_FLAGS = env.flags("WORKBENCH_CHAT_FLAGS")
# Where it computes, written by `manage.py up` for the pages.
CHAT_DEVICE = env.text("WORKBENCH_CHAT_DEVICE")
EMBED_MODEL = env.text("WORKBENCH_EMBED_MODEL")

# --- Login -------------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# --- Limits of one person ----------------------------------------------------

# What one person, or their program, may have at a time; apps/core/quotas.py says of what.
LIMITS = env.figures(
    "WORKBENCH_LIMITS",
    {
        "requests": 150,
        "questions": 50,
        "previews": 4,
        "predictions": 64,
        "programs": 256,
        "looks": 4,
        "uploads": 4,
        "streams": 100,
        "readings": 4,
        "attachments": 100,
        "keys": 50,
        "shares": 500,
        "files": 1000,
        "batches": 100,
    },
)

# All files that one person has attached to questions, together.
ATTACHMENTS_MB = env.integer("WORKBENCH_ATTACHMENTS_MB", default=5000)
# All files that programs of one person have uploaded to /v1/files, together.
PROGRAM_FILES_MB = env.integer("WORKBENCH_PROGRAM_FILES_MB", default=5000)

# What a million tokens cost, for the page “Usage”; and in which currency.
TOKEN_PRICES = env.prices("WORKBENCH_TOKEN_PRICES", ("in", "cached", "out"))
CURRENCY = env.text("WORKBENCH_CURRENCY", "EUR")

# --- Files -------------------------------------------------------------------

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = env.text("WORKBENCH_STATIC_ROOT", str(BASE_DIR / "staticfiles"))
SERVESTATIC_USE_FINDERS = True  # a fresh clone needs no collectstatic
SERVESTATIC_ADD_HEADERS_FUNCTION = add_static_headers
UPLOADS_DIR = DATA_DIR / "uploads"
CLASSIFIERS_DIR = DATA_DIR / "classifiers"
PROGRAM_FILES_DIR = DATA_DIR / "program-files"
# 500 MB: a million short texts. Larger files belong in several datasets.
UPLOAD_LIMIT_BYTES = env.integer("WORKBENCH_UPLOAD_LIMIT_MB", 500) * 1024 * 1024
# Where files come in. Elsewhere a request is a form or JSON, DATA_UPLOAD_MAX_MEMORY_SIZE large.
UPLOAD_ROUTES = frozenset(
    {
        "chat/attachments/",
        "chat/import/",
        "chat/projects/<int:pk>/documents/",
        "classify/import/",
        "classify/<int:pk>/files/",
        "datasets/new/",
        "servers/plan/",
        "api/v1/attachments",
        "api/v1/classifiers/import",
        "api/v1/classifiers/<int:pk>/predict-file",
        "api/v1/conversations/import",
        "api/v1/datasets",
        "api/v1/projects/<int:pk>/documents",
        "v1/files",
    }
)
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = None
FILE_UPLOAD_PERMISSIONS = 0o600
# A form of a hundred columns and a long prompt, and no more.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

# --- Language, time, log -----------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        # One line per request to a model server is noise, and its URL is no one else's business.
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
    },
}
