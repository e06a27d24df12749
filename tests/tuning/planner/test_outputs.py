"""What a plan writes, where no program is needed to check it."""

from dataclasses import replace

import pytest
import yaml

from apps.tuning.errors import PlanError
from apps.tuning.planner import outputs
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import Kind, find_hardware
from tests.tuning.planner.plans import plan_of, server_of
from tests.tuning.planner.test_memory import LLAMA

GPU = find_hardware("RTX 4090")


@pytest.mark.parametrize("path", ["a #1.gguf", "a;b.gguf"])
def test_a_path_that_an_ini_file_would_cut_is_refused(path: str) -> None:
    with pytest.raises(PlanError, match="rename the file"):
        outputs.router_presets([server_of(plan_of(LLAMA), Files(path))])


def test_compose_mounts_the_folders_of_the_files() -> None:
    files = Files("/data/a $b.gguf", projector="/other/mmproj.gguf")
    server = server_of(plan_of(LLAMA, hardware=GPU), files)
    text = outputs.compose(server, hardware=GPU.name, kind=GPU.kind)
    service = yaml.safe_load(text)["services"]["llama"]
    words = service["command"]
    assert words[words.index("--model") + 1] == "/models/0/a $$b.gguf"
    assert words[words.index("--mmproj") + 1] == "/models/1/mmproj.gguf"
    assert [mount["source"] for mount in service["volumes"]] == ["/data", "/other"]
    assert (service["gpus"], service["image"].split(":")[1]) == ("all", "server-cuda")
    assert service["ports"] == ["127.0.0.1:8080:8080"]


@pytest.mark.parametrize(
    ("hardware", "kind", "tag"),
    [("RX 7900 XTX", Kind.GPU, "server-vulkan"), ("Apple M4", Kind.APPLE, "server")],
)
def test_compose_names_the_image_for_the_hardware(hardware: str, kind: Kind, tag: str) -> None:
    server = server_of(plan_of(LLAMA), Files("a.gguf"))
    text = outputs.compose(server, hardware=hardware, kind=kind)
    assert yaml.safe_load(text)["services"]["llama"]["image"].endswith(f":{tag}")
    assert text.startswith("# Docker cannot") is (kind is Kind.APPLE)


def test_litellm_passes_on_as_many_requests_as_there_are_slots() -> None:
    server = replace(server_of(plan_of(LLAMA, slots=3), Files("a.gguf")), port=9000)
    [entry] = yaml.safe_load(outputs.litellm([server]))["model_list"]
    assert entry["model_name"] == "a"
    assert entry["litellm_params"]["api_base"] == "http://127.0.0.1:9000/v1"
    assert entry["litellm_params"]["max_parallel_requests"] == 3
