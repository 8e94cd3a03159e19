"""Pieces of scripts as people paste them: what is mended, and that each line stays where it is."""

from __future__ import annotations

import ast
import time

import pytest

from allaboard.formats.python.pieces.fragments import MAX_NCHARS, mend_fragment
from allaboard.formats.python.pieces.missing_imports import missing_imports

PASTED = {
    "the first line's indentation is lost": (
        "if rank == 0:\n        save()\n    else:\n        dist.barrier()\n",
        "if rank == 0:\n    save()\nelse:\n    dist.barrier()",
        True,
    ),
    "prompts": (">>> import os\n>>> for x in y:\n...     f(x)\n", "import os\nfor x in y:\n    f(x)", True),
    "a fence behind the last line": ("x = 1\nf(x)```\n", "x = 1\nf(x)", True),
    "back-ticks around it": ("`f(x)\n    `\n", "f(x)", True),
    "curly quotes": ("f(‘a’)\n", "f('a')", True),
    "Python 2": ("print 'a'\ntry:\n    f()\nexcept E, e:\n    pass\n",
                 "pass\ntry:\n    f()\nexcept E as e:\n    pass", True),
    "the newer text of a difference": ("@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n", "a = 1\nb = 3", True),
    "a difference from the middle of a call": (
        "         size,\n     )\n+    if rank == 0:\n+        f()\n",
        "if rank == 0:\n    f()",
        True,
    ),
    "a fence before the first word": ("```class A(B):\n    a = 1\n", "class A(B):\n    a = 1", True),
    "prose between two pieces": (
        "def f():\n    return 1\n```\nand then I call it.\n\n```python\nf()\n",
        "def f():\n    return 1\nf()",
        True,
    ),
    "prose before a piece": ("Dear all, this hangs:\n```\nf()\n```\nWhy?\n", "f()", True),
    "a cut piece with a fence": ("```python\na = 1\nf(x,\n", "a = 1\npass", True),
    "prose without a fence": ("I'm training on 4 nodes, by Slurm.\n\nf()\n", "f()", True),
    "nothing under a loop": ("for x in y:\n    # here\nf()\n", "for x in y:\n    pass\nf()", False),
    "a slip of one column": ("if a:\n    f()\n   g()\n", "if a:\n    f()\n    g()", False),
    "the last statement is cut": ("a = 1\ndef f(\n", "a = 1\npass", False),
    "the last statement of a block is cut": ("    a = 1\n    f(x,\n", "a = 1\npass", True),
    "a line that is no Python": ("a = 1\nhere it stops now\nb = 2\n", "a = 1\npass\nb = 2", False),
    "a header that is no Python": ("a = 1\nif a ==:\n    f()\n", "a = 1\nif True:\n    f()", False),
    "a try without its end": ("try:\n    f()\ng()\n", "if True:\n    f()\ng()", False),
}  # fmt: skip


@pytest.mark.parametrize("name", PASTED)
def test_a_piece_is_mended(name: str) -> None:
    pasted, meant, is_mere_paste = PASTED[name]
    fragment = mend_fragment(pasted)
    assert fragment is not None
    text = fragment.text
    if any(line[:1].isspace() for line in text.split("\n") if line.strip()):
        first = next(line for line in text.split("\n") if line.strip())
        if first[:1].isspace():
            text = "if True:\n" + text
            meant = "if True:\n" + "\n".join(f"    {line}" for line in meant.split("\n"))
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(meant))
    assert fragment.is_mere_paste == is_mere_paste
    assert fragment.text.count("\n") == pasted.count("\n")


@pytest.mark.parametrize(
    "text",
    ["", "Dear all,\nmy job hangs. Why?\nIt says nothing at all.\nThanks!\nA.\n" * 3, "x(\n" * 99],
)
def test_what_is_no_python_is_left(text: str) -> None:
    assert mend_fragment(text) is None


def test_a_long_text_is_given_up_soon() -> None:
    assert mend_fragment("x = (\n" * (MAX_NCHARS // 6 + 1)) is None
    began = time.perf_counter()
    mend_fragment("+ x = ]\n" * 20_000)
    assert time.perf_counter() - began < 20


IMPORTS = {
    "dist.barrier()": ("import torch.distributed as dist", False),
    "accelerator.wait_for_everyone()": (
        "from accelerate import Accelerator\naccelerator = Accelerator()",
        False,
    ),
    "hvd.callbacks.MetricAverageCallback()": ("import horovod.tensorflow.keras as hvd", False),
    "hvd.allreduce(loss)": ("import horovod.torch as hvd", True),
    "import torch.distributed as dist\ndist.barrier()": ("", False),
    "from mine import *\ndist.barrier(model)": ("", False),
    "def f(dist):\n    dist.barrier()": ("", False),
    "try:\n    f = len\nexcept ImportError as e:\n    print(e)": ("", False),
}


@pytest.mark.parametrize("source", IMPORTS)
def test_the_imports_that_it_lacks(source: str) -> None:
    missing = missing_imports(ast.parse(source))
    assert (missing.text, missing.leaves_others) == IMPORTS[source]
