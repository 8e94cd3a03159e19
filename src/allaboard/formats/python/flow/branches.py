"""Whether a value that is made in one branch of a script comes to a call in another one."""

from __future__ import annotations

import ast

from allaboard.formats.python.script_ast import Script, leaves_block


def exclude_each_other(script: Script, first: ast.AST, second: ast.AST) -> bool:
    """Return True if the two are under one condition, and one of them where it does not hold."""
    first_conditions, second_conditions = _conditions(script, first), _conditions(script, second)
    return any(
        test in second_conditions and second_conditions[test] is not holds
        for test, holds in first_conditions.items()
    )


def may_reach(script: Script, made: ast.expr, variable: ast.expr, use: ast.expr) -> bool:
    """Return True if ``variable`` may have the value ``made`` where it is used: no branch parts the two, no
    later value takes its place, and the use is not under a condition on the variable."""
    if not isinstance(variable, (ast.Name, ast.Attribute)):
        return True
    text, around_use = ast.unparse(variable), {use, *script.ancestors(use)}
    if isinstance(variable, ast.Attribute) and _class_of(script, made) is not _class_of(
        script, use
    ):
        return False
    if any(isinstance(a, (ast.If, ast.IfExp)) and text in ast.unparse(a.test) for a in around_use):
        return False
    if exclude_each_other(script, made, use):
        return False
    around_made = {made, *script.ancestors(made)}
    for condition in around_made - around_use:
        if isinstance(condition, ast.If) and any(
            leaves_block(b) and around_made & set(b) for b in (condition.body, condition.orelse)
        ):
            return False
    if script.enclosing_function(made) is not script.enclosing_function(use):
        return True
    return made.lineno <= use.lineno and not any(
        isinstance(n, ast.Assign)
        and made.lineno < n.lineno < use.lineno
        and n not in around_made
        and script.parents.get(n) in around_use
        and text in map(ast.unparse, n.targets)
        for n in script.parents
    )


def _conditions(script: Script, node: ast.AST) -> dict[str, bool]:
    """Return the tests of the branches that a node is in, and whether each of them holds there."""
    conditions: dict[str, bool] = {}
    child = node
    for ancestor in script.ancestors(node):
        if isinstance(ancestor, (ast.If, ast.IfExp)) and child is not ancestor.test:
            body = ancestor.body if isinstance(ancestor.body, list) else [ancestor.body]
            test, holds = ancestor.test, child in body
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, holds = test.operand, not holds
            conditions.setdefault(ast.unparse(test), holds)
        child = ancestor
    return conditions


def _class_of(script: Script, node: ast.AST) -> ast.ClassDef | None:
    return next((a for a in script.ancestors(node) if isinstance(a, ast.ClassDef)), None)
