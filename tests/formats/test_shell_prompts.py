"""Prompts before commands, as a copy of a terminal has them."""

from __future__ import annotations

import pytest

from allaboard.formats.shell.prompts import without_prompts

PROMPTS = [
    "$ torchrun --nnodes 2 a.py",
    "> mpirun -np 4 python a.py",
    "(venv) $ python a.py",
    "ann@login:~/photos$ srun -n2 python a.py",
    "root@pod-0:/work/data# srun -N1 -n2  python a.py",
    "[ann@login photos]$ sbatch --wrap 'python a.py'",
    "$ CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch a.py",
]
NONE = [
    "# python a.py",
    "> out.txt",
    "torchrun a.py > log",
    "  $launcher python a.py",
    "echo $ python",
    "git clone git@example.org:a/b",
]


@pytest.mark.parametrize("line", PROMPTS)
def test_blanks_stand_for_a_prompt(line: str) -> None:
    text = without_prompts(f"a=1\n{line}\n")
    assert len(text) == len(line) + 5
    command = text.split("\n")[1].lstrip()
    assert line.endswith(command)
    assert (
        command.split()[0] in ("torchrun", "mpirun", "python", "srun", "sbatch") or "=" in command
    )


@pytest.mark.parametrize("line", NONE)
def test_other_lines_stay(line: str) -> None:
    assert without_prompts(line) == line


def test_fences_are_blank() -> None:
    text = "node1:\n```bash\ntorchrun a.py\n```\n"
    assert without_prompts(text) == "node1:\n       \ntorchrun a.py\n   \n"
