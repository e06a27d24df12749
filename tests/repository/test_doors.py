"""What rooms hand to each other has types."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNTYPED = "dict[str, Any]"


@cache
def tree(module: str) -> ast.Module | None:
    place = ROOT.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.exists():
            return ast.parse(path.read_text(encoding="utf-8"))
    return None


def definition(module: str, name: str) -> ast.stmt | None:
    """Return what defines a name of a module, which may import it from another."""
    found = tree(module)
    for node in found.body if found else ():
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name == name:
                return node
            case ast.Assign(targets=[ast.Name(id=given)]) if given == name:
                return node
            case ast.ImportFrom(module=str(source), names=names) if source.startswith("apps"):
                for alias in names:
                    if (alias.asname or alias.name) == name:
                        return definition(source, alias.name)
    return None


def annotations(node: ast.stmt | None) -> Iterator[str]:
    """Yield the types in a function's signature, of a class's public parts, or of an alias."""
    match node:
        case ast.ClassDef(body=body):
            for part in body:
                if not getattr(part, "name", "").startswith("_"):
                    yield from annotations(part)
        case ast.AnnAssign(annotation=annotation):
            yield ast.unparse(annotation)
        case ast.Assign(value=value):
            yield ast.unparse(value)
        case (
            ast.FunctionDef(args=given, returns=returned)
            | ast.AsyncFunctionDef(args=given, returns=returned)
        ):
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            hints = [one.annotation for one in (*arguments, given.vararg, given.kwarg) if one]
            yield from (ast.unparse(hint) for hint in [*hints, returned] if hint)


def names_from_other_rooms(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of all that a file uses from other rooms."""
    room = path.relative_to(ROOT).parts[:2]
    code = ast.parse(path.read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    for node in ast.walk(code):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            module = f"{node.module}.{alias.name}"
            if not module.startswith("apps.") or tuple(module.split(".")[:2]) == room:
                continue
            if tree(module) is None:
                yield node.module, alias.name
            else:
                modules[alias.asname or alias.name] = module
    for node in ast.walk(code):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in modules:
                yield modules[name], attribute


def test_nothing_untyped_passes_a_door() -> None:
    """A `dict[str, Any]` says nothing of its keys: TypedDicts, dataclasses and JSON types do."""
    files = [*(ROOT / "apps").rglob("*.py"), *(ROOT / "workbench").rglob("*.py")]
    used = {name for path in files for name in names_from_other_rooms(path)}
    assert len(used) > 400
    untyped = {
        f"{module}: {name}"
        for module, name in used
        if any(UNTYPED in hint for hint in annotations(definition(module, name)))
    }
    assert sorted(untyped) == []


def test_the_rows_of_jobs_are_queried_by_their_room_alone() -> None:
    """Features reach jobs through its services: types of its models, never their managers."""
    tables = {"Batch", "BatchServer", "Item"}
    found = []
    for path in (ROOT / "apps").rglob("*.py"):
        if (ROOT / "apps" / "batch") in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr="objects") if name in tables:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
