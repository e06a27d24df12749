"""What a plan writes is read back as it was meant, whatever the files are called."""

import shlex

import yaml
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import ImportedServer, import_servers
from apps.tuning.planner.configurations import write_configuration
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import find_hardware
from tests.tuning.planner.plans import plan_of
from tests.tuning.planner.test_memory import LLAMA

GPU = find_hardware("RTX 4090")
PLAN = plan_of(LLAMA, hardware=GPU)
# What shells, YAML, INI files and Compose give a meaning to, and letters of several scripts.
NAMES = st.text(alphabet="ab \t'\"\\$`#;:=[]{}()&|<>*?!%@~^,.-_äж字🙂", min_size=1, max_size=30)
PATHS = NAMES.map("/models/{}.gguf".format).filter(
    lambda path: path.isprintable() and "${" not in path  # Files refuses these
)


def import_one(text: str) -> ImportedServer:
    [server] = import_servers(text, shipped_table())
    return server


@given(PATHS)
def test_a_command_starts_the_model_of_any_path(path: str) -> None:
    text = write_configuration("command", PLAN, Files(path))
    words = shlex.split(text.replace("\\\n", " "))
    assert words[words.index("--model") + 1] == path
    server = import_one(text)
    assert (server.model, server.problems, server.cache) == (path, (), PLAN.cache)


@given(PATHS)
def test_llama_swap_starts_the_model_of_any_path(path: str) -> None:
    text = write_configuration("llama-swap", PLAN, Files(path))
    [config] = yaml.safe_load(text)["models"].values()
    words = shlex.split(config["cmd"])
    assert words[words.index("--model") + 1] == path
    server = import_one(text)
    assert (server.model, server.problems, server.cache) == (path, (), PLAN.cache)


@given(PATHS)
def test_a_router_starts_the_model_of_any_path_that_an_ini_file_can_hold(path: str) -> None:
    try:
        text = write_configuration("router", PLAN, Files(path))
    except PlanError:
        assert set(path) & set("#;")
        return
    server = import_one(text)
    assert (server.model, server.problems, server.cache) == (path, (), PLAN.cache)


@given(PATHS)
def test_compose_mounts_and_starts_the_model_of_any_path(path: str) -> None:
    text = write_configuration("compose", PLAN, Files(path))
    service = yaml.safe_load(text)["services"]["llama"]
    words = [word.replace("$$", "$") for word in service["command"]]
    folder, _, name = path.rpartition("/")
    [mount] = service["volumes"]
    assert mount["source"].replace("$$", "$") == folder
    assert words[words.index("--model") + 1] == f"{mount['target']}/{name}"
    assert service["ports"] == ["127.0.0.1:8080:8080"]


@given(PATHS)
def test_the_name_of_a_model_is_plain_and_the_same_everywhere(path: str) -> None:
    files = Files(path)
    assert files.name
    assert set(files.name) <= set("abcdefghijklmnopqrstuvwxyz._-" + "model")
    [entry] = yaml.safe_load(write_configuration("litellm", PLAN, files))["model_list"]
    olla = yaml.safe_load(write_configuration("olla", PLAN, files))
    [endpoint] = olla["discovery"]["static"]["endpoints"]
    swap = yaml.safe_load(write_configuration("llama-swap", PLAN, files))["models"]
    assert entry["model_name"] == endpoint["name"] == files.name
    assert list(swap) == [files.name]
