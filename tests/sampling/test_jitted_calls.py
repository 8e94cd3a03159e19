"""Lines at which a JAX program calls what it has jitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.facts import Frame
from allaboard.sampling.jitted_calls import calls_jitted

PROGRAM = """import jax, numpy as np
from functools import partial

@jax.jit
def step(w, x):
    return w - x

@partial(jax.jit, static_argnums=0)
def scaled(n, x):
    return x * n

def load(path):
    return np.load(path)

class Trainer:
    def __init__(self):
        self.update = jax.jit(lambda w: w + 1)

    def run(self, w, x):
        w = step(
            w,
            x,
        )
        w = self.update(scaled(2, w))
        x = load("x.npy")
        return jax.jit(lambda v: v)(w)
"""


@pytest.mark.parametrize(
    ("line", "is_jitted"), [(20, True), (21, True), (24, True), (25, False), (13, False)]
)
def test_the_line_decides(tmp_path: Path, line: int, is_jitted: bool) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    assert calls_jitted(Frame(str(file), line, "run")) is is_jitted


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "torn.py").write_text("def step(:")
    assert not calls_jitted(Frame(str(tmp_path / "torn.py"), 1, "run"))
    assert not calls_jitted(Frame("<string>", 1, "run"))
