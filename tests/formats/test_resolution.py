"""What names of a script stand for: through parameters, objects, properties and processes."""

from __future__ import annotations

import ast

import pytest

from allaboard.facts import ScriptFacts
from allaboard.formats.python.constants import UNKNOWN
from allaboard.formats.python.evaluation import evaluate
from allaboard.formats.python.script_ast import read_script

CONFIG = """from dataclasses import dataclass, field
@dataclass
class Config:
    host: str = "a"
    port: int = 1
    sizes: tuple = field(default=(2, 3))
    @property
    def url(self):
        return f"{self.host}:{self.port}"
"""


def value_in(source: str) -> object:
    """Return the value of the argument of `show(...)` in a script."""
    script = read_script(ScriptFacts(source=source))
    (call,) = (c for _, c in script.calls if ast.unparse(c.func) == "show")
    return evaluate(script, call.args[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("c = Config()\nshow(c.port)\n", 1),
        ("c = Config('b', port=2)\nshow(c.url)\n", "b:2"),
        ("def f(c):\n    show(c.sizes)\nf(Config())\n", [2, 3]),
        ("def f(rank, c):\n    show(c.port)\nmp.spawn(f, args=(Config(port=7),), nprocs=2)\n", 7),
        ("def f(c):\n    show(c.port)\nmp.Process(target=f, kwargs=dict(c=Config())).start()\n", 1),
        ("def make():\n    return Config(port=9)\nshow(make().port)\n", 9),
        (
            "class Run:\n    def __init__(self, c):\n        self.c = c\n"
            "    def go(self):\n        show(self.c.host)\nRun(Config()).go()\n",
            "a",
        ),
        ("import types\nc = types.SimpleNamespace(port=4)\nshow(c.port)\n", 4),
        (
            "import types\nc = types.SimpleNamespace(port=4)\nd = c\nd.port = 3\nshow(c.port)\n",
            UNKNOWN,
        ),
        ("class Small(Config):\n    pass\nshow(Small().url)\n", UNKNOWN),
        ("c = Config()\nc.port = 5\nd = c\nshow(d.port)\n", UNKNOWN),
        ("show(Config(**options).port)\n", UNKNOWN),
        ("def f(c):\n    show(c.port)\nf(Config())\nf(Config(port=2))\n", UNKNOWN),
        ("def f(c):\n    show(c.port)\nf(Config())\nregister(f)\n", UNKNOWN),
        ("@command\ndef f(c):\n    show(c.port)\nf(Config())\n", UNKNOWN),
        ("def f(c):\n    show(c.port)\nf(*configs)\n", UNKNOWN),
    ],
)
def test_a_field_of_a_configuration(text: str, value: object) -> None:
    assert value_in(CONFIG + text) == value


def test_a_constructor_of_its_own_takes_other_arguments() -> None:
    text = (
        "class Point:\n    place = 'x'\n    def __init__(self, name):\n        self.name = name\n"
    )
    assert value_in(text + "show(Point('y').place)\n") == "x"


def test_methods_that_return_each_other_end() -> None:
    methods = "".join(
        f"    def {name}(self):\n        return self.{other}().{name}()\n"
        for name, other in (("a", "b"), ("b", "a"))
    )
    assert value_in(f"class A:\n{methods}show(A().a().b())\n") is UNKNOWN
