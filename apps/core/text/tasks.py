"""Task lists in Markdown: items that begin with [ ] or [x] have a checkbox."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_BOX = re.compile(r"\[([ xX])\][ \n]")


def use(parser: MarkdownIt) -> None:
    """Add the rule of task lists to a parser."""
    parser.core.ruler.before("inline", "tasks", _tasks)
    parser.core.ruler.after("inline", "task_boxes", _boxes)
    parser.add_render_rule("task_box", _render_box)


def _tasks(state: StateCore) -> None:
    """Take the boxes out of the texts before what is in the texts is parsed."""
    for item, _, text in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if item.type != "list_item_open" or text.type != "inline":
            continue
        if box := _BOX.match(f"{text.content}\n"):
            item.attrSet("class", "task")
            text.meta["done"] = box[1] != " "
            text.content = text.content[box.end() :]


def _boxes(state: StateCore) -> None:
    for text in state.tokens:
        if text.type == "inline" and "done" in text.meta and text.children is not None:
            box = Token("task_box", "input", 0, meta=text.meta)
            text.children.insert(0, box)


def _render_box(self: object, tokens: list[Token], index: int, options: object, env: object) -> str:
    is_done = tokens[index].meta["done"]
    name, mark = ("Done", " checked") if is_done else ("To do", "")
    return f'<input type="checkbox" aria-label="{name}" disabled{mark}> '
