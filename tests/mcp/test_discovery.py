"""What is select_tools of the tools that a server tells, and what their results say."""

from typing import Any

import pytest
from mcp import types  # noqa: TID251 - what servers send

from apps.mcp import results
from apps.mcp.discovery import MAX_TOOLS, select_tools, tool_name

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def tool(name: str, schema: dict[str, Any] | None = None, **more: Any) -> types.Tool:
    return types.Tool(name=name, input_schema=OBJECT if schema is None else schema, **more)


def test_by_name_and_the_same_every_time() -> None:
    told = [tool("b"), tool("a.b/c", title="Abc"), tool("a", description=" Says a. ")]
    found, skipped = select_tools("slug", told)
    assert [t["name"] for t in found] == sorted(t["name"] for t in found)
    assert select_tools("slug", reversed(told)) == (found, skipped)
    assert found[0] == {
        "name": "slug__a",
        "tool": "a",
        "title": "a",
        "description": "Says a.",
        "parameters": OBJECT,
    }
    assert skipped == []


def test_names_that_models_can_call() -> None:
    assert tool_name("s", "read-file_2") == "s__read-file_2"
    names = {tool_name("s", name) for name in ("a.b", "a/b", "a b", "a_b", "x" * 64, "x" * 65)}
    assert len(names) == 6
    for name in names:
        assert len(name) <= 64
        assert name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, "the arguments are not an object."),
        ({**OBJECT, "required": "all"}, "the schema is not valid"),
        ({**OBJECT, "description": "x" * 30_000}, "is larger than 20,000 bytes."),
        ({**OBJECT, "properties": {"a": {"$ref": "http://inside/"}}}, "to another document."),
    ],
)
def test_what_no_model_can_be_given_is_left_out(schema: dict[str, Any], said: str) -> None:
    found, skipped = select_tools("s", [tool("bad", schema), tool("good")])
    assert [t["tool"] for t in found] == ["good"]
    assert len(skipped) == 1
    assert skipped[0].startswith("bad: ")
    assert said in skipped[0]


def test_not_more_than_fit() -> None:
    found, skipped = select_tools("s", [tool(f"t{n:03}") for n in range(MAX_TOOLS + 5)])
    assert len(found) == MAX_TOOLS
    assert len(skipped) == 1


def test_results_of_every_kind_become_text() -> None:
    text = types.TextContent(type="text", text="Tea.")
    page = types.TextResourceContents(uri="file:///a", text="Inside.")
    link = types.ResourceLink(type="resource_link", name="A page", uri="https://x.org/")
    content = [text, types.EmbeddedResource(type="resource", resource=page), link]
    said = results.result_text(types.CallToolResult(content=content))
    assert said == "Tea.\nInside.\nA page: https://x.org/"
    bare = types.CallToolResult(content=[], structured_content={"cups": 2})
    assert results.result_text(bare) == '{"cups": 2}'
    assert results.result_text(types.CallToolResult(content=[])) == "No result."
