"""What the classes of a script state: their methods and fields, and the calls that make their objects."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Function, Script


def method_of(script: Script, class_name: str, name: str) -> Function | None:
    """Return the method that an object of a class has, its own or that of a base in the script; None if
    there is none, or a class that is derived from it has another."""
    for derived in script.derived_classes.get(class_name, ()):
        if any(getattr(s, "name", "") == name for s in script.class_bodies[derived]):
            return None
    reached: list[str] = []
    while class_name in script.classes and class_name not in reached:
        body = script.class_bodies[class_name]
        methods = [s for s in body if isinstance(s, Function) and s.name == name]
        if methods:
            return methods[0] if len(methods) == 1 else None
        reached.append(class_name)
        bases = [ast.unparse(b) for b in script.classes[class_name].bases]
        class_name = next((b for b in bases if b in script.classes), "")
    return None


def is_made_of_fields(script: Script, class_name: str) -> bool:
    """Return True if a constructor may set what the class states, as that of a dataclass does."""
    node = script.classes[class_name]
    return bool(node.bases or node.decorator_list) and not method_of(script, class_name, "__init__")


def makers_of(script: Script, class_name: str) -> list[ast.Call]:
    """Return the calls that make objects of a class; empty if others may make some, too."""
    return [] if class_name in script.derived_classes else script.calls_of(class_name)


def stated_fields(script: Script, class_name: str) -> dict[str, ast.expr | None]:
    """Return what a class states for its objects, by name, in the text's order; None for what it declares
    without a value, or states twice."""
    stated: dict[str, ast.expr | None] = {}
    for statement in script.class_bodies[class_name]:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(statement, (ast.Assign, ast.AnnAssign)):
                stated[target.id] = None if target.id in stated else statement.value
    return stated
