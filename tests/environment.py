"""Loaded before Django's settings (pytest -p): a data folder and a Redis of the test run's own.

SQLite, unless WORKBENCH_TEST_DATABASE_URL names a PostgreSQL server to make a test database on.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from hypothesis import settings

FOLDER = Path(tempfile.mkdtemp(prefix="workbench-tests-"))
REDIS_SOCKET = FOLDER / "redis.sock"

os.environ["WORKBENCH_DATA"] = str(FOLDER / "var")
os.environ["REDIS_URL"] = f"unix://{REDIS_SOCKET}?db=0"
# As `make run` has it, whose MCP servers most tests are about.
os.environ["WORKBENCH_MCP_COMMANDS"] = "true"
# Tests that are not about titles count requests and slots: nothing is to ask beside them.
os.environ["WORKBENCH_TITLES"] = "false"
# Hundreds of processes are started here: they compile a module once, and pytest rewrites it once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for name in ("DATABASE_URL", "LLM_BASE_URL", "LLM_API_KEY", "EMBED_BASE_URL", "EMBED_API_KEY"):
    os.environ.pop(name, None)

if database := os.environ.get("WORKBENCH_TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = database

# The same examples in every run: what fails once fails for everybody, and can be mended.
settings.register_profile("suite", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("suite")

atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
