"""Input that nobody should give: a finding or an error with its place; no crash, no hang."""

from __future__ import annotations

import io
import resource
import sys
import time
from pathlib import Path

import pytest

from allaboard.check.collect import configuration_sources, from_files, resolve_material
from allaboard.check.read_file import MAX_FILE_NBYTES, read_source
from allaboard.check.run_rules import judge_configuration
from allaboard.check.size_limits import MAX_CHARS_BY_KIND
from allaboard.facts import Finding, Material
from cost_growth import assert_growth


def found(tmp_path: Path, name: str, content: str | bytes) -> list[Finding]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    began = time.process_time()
    findings = judge_configuration(from_files([str(path)]))
    assert time.process_time() - began < 10
    assert not any("this rule itself failed" in f.summary for f in findings)
    assert not any("own reader" in f.summary for f in findings)
    return findings


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(24)
)
DEEP_YAML = "apiVersion: v1\nkind: Job\nspec: " + "[" * 100_000
BROKEN = {
    "truncated": ("t.json", '{"cluster": {"worker": ["a:1"', "CFG002"),
    "deep JSON": ("t.json", "[" * 1000, "CFG002"),
    "very deep JSON": ("t.json", '{"a":' * 100_000, "CFG002"),
    "deep YAML": ("t.yaml", DEEP_YAML, "CFG001"),
    "deep block YAML": ("t.yaml", "kind: Job\nspec:\n  " + "- " * 5000 + "x\n", "CFG001"),
    "deep Python": ("t.py", "x = " + "(" * 5000, "CFG001"),
    "deep Python unary": ("t.py", "x = " + "-" * 20_000 + "1", "CFG001"),
    "binary": ("t.json", bytes(range(256)) * 100, "CFG001"),
    "UTF-16": ("t.yaml", "kind: Job".encode("utf-16"), "CFG001"),
    "zero byte": ("t.sh", "export RANK=0\nexport A=\0\n", "CFG001"),
    "duplicate keys": ("t.json", '{"cluster": {"worker": ["a:1"], "worker": ["b:1"]}}', "CFG003"),
    "self-containing alias": ("t.yaml", "kind: Job\nspec: &a [*a]\n", "CFG001"),
    "tabs in YAML": ("t.yaml", "kind: Job\nspec:\n\tx: 1\n", "CFG001"),
    "Windows line ends": ("t.sh", "export MASTER_ADDR=a\r\nexport MASTER_PORT=1\r\n", "CFG001"),
    "empty": ("t.yaml", "", ""),
    "numbers for text": ("t.json", '{"cluster": {"worker": [1, 2]}, "task": 3}', "CFG003"),
    "a list": ("t.json", "[1, 2]", "CFG003"),
    "NaN": (
        "t.json",
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": NaN}}',
        "CFG003",
    ),
    "huge index": (
        "t.json",
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": ' + "9" * 5000 + "}}",
        "CFG003",
    ),
    "quote that never ends": ("t.sh", "export TF_CONFIG='{\n" * 3, "CFG002"),
    "substitution that never ends": ("t.sh", "export RANK=$((((\n", ""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_is_told_with_its_place(case: str, tmp_path: Path) -> None:
    name, content, code = BROKEN[case]
    findings = found(tmp_path, name, content)
    if not code:
        return
    assert code in [f.rule for f in findings], [f.summary for f in findings]
    first = next(f for f in findings if f.rule == code)
    assert first.where is not None and first.where.line >= 1


def test_aliases_that_explode_stay_shared(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found(tmp_path, "bomb.yaml", "apiVersion: v1\nkind: Job\nspec: {}\n" + BOMB)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_huge_file_is_not_taken_in(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (finding,) = judge_configuration(from_files([str(path)]))
    assert finding.rule == "CFG001" and "larger than 16 MB" in finding.summary
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3 * MAX_FILE_NBYTES / 1024


LONG = {
    "t.json": '{"cluster": {"worker": ['
    + '"a:2222", ' * (MAX_CHARS_BY_KIND["json"] // 10)
    + '"b:2222"]}}',
    "t.yaml": "kind: Job\n" * (MAX_CHARS_BY_KIND["manifest"] // 10 + 1),
    "t.hostfile": "node slots=8\n" * (MAX_CHARS_BY_KIND["hostfile"] // 13 + 1),
    "t.sh": "RANK=0 python x.py &\n" * (MAX_CHARS_BY_KIND["shell"] // 21 + 1),
    "t.py": "dist.barrier()\n" * (MAX_CHARS_BY_KIND["python"] // 15 + 1),
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_too_large_for_its_kind_is_refused_at_once(name: str, tmp_path: Path) -> None:
    began = time.process_time()
    (finding,) = found(tmp_path, name, LONG[name])
    assert time.process_time() - began < 2
    assert (
        finding.rule == "CFG001" and f"{len(LONG[name]):,} characters, and as " in finding.summary
    )


MANY = {
    "conditions": ("t.py", lambda n: "import torch.distributed as dist\nrank = dist.get_rank()\n"
                   + "".join(f"if rank == {i}:\n    dist.barrier()\n" for i in range(n))),
    "calls": ("t.py", lambda n: "import torch.distributed as dist\n"
              + "dist.all_reduce(x)\n" * n),
    "functions": ("t.py", lambda n: "import torch.distributed as dist\n"
                  + "".join(f"def f{i}():\n    f{i + 1}(); f{i + 2}(); f{i + 3}()\n" for i in range(n))
                  + "if dist.get_rank() == 0:\n    f0()\n"),
    "variables": ("t.sh", lambda n: "A0=a\n"
                  + "".join(f"A{i}=$A{i - 1}$A{i - 1}; x $A{i}\n" for i in range(1, n))),
    "words": ("t.sh", lambda n: "A='" + "a " * n + "'\n" + "echo $A b$A\n" * n),
    "members": ("t.sh", lambda n: "".join(f"RANK={i} python x.py &\n" for i in range(n))),
    "escapes": ("t.sh", lambda n: 'export TF_CONFIG="' + '\\"a\\" ' * n + '"\n'),
    "scripts in scripts": ("t.sh", lambda n: "bash -c '" + "torchrun t.py; " * n + "'\n"),
    "blocks": ("t.yaml", lambda n: "kind: Pod\nspec:\n  containers:\n  - command: [sh, -c]\n"
               "    args:\n    - |\n" + "      torchrun --nnodes=2 t.py\n" * n),
    "workloads": ("t.yaml", lambda n: "".join(
        f"kind: Job\nmetadata: {{name: job-{i}}}\nspec: {{template: {{spec: {{subdomain: s, containers: "
        f"[{{env: [{{name: MASTER_ADDR, value: job-{i}-0.s}}]}}]}}}}}}\n---\n" for i in range(n))),
}  # fmt: skip


@pytest.mark.parametrize("case", MANY)
def test_time_grows_with_the_length(case: str, tmp_path: Path) -> None:
    name, made = MANY[case]

    def cost(count: int) -> float:
        began = time.process_time()
        found(tmp_path, name, made(count))
        return time.process_time() - began

    # A line would be 8 times, a square 64.
    assert_growth(cost, 500, 4000, at_most=24)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    (finding,) = judge_configuration(from_files([str(fifo)]))
    assert "is no regular file" in finding.summary
    with pytest.raises(OSError, match="is a folder"):
        read_source(str(tmp_path))


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    class Stdin:
        buffer = io.BufferedReader(Endless())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert read_source("-").problem is not None


VARIABLES = [
    {"TF_CONFIG": "[" * 5000},
    {"TF_CONFIG": ""},
    {"TF_CONFIG": '{"cluster": {"worker": {"0": "a:1"}}, "task": {"index": {}, "type": []}}'},
    {"RANK": "", "WORLD_SIZE": "４", "MASTER_ADDR": "\ud800", "MASTER_PORT": "9" * 400},
    {"RANK": "²", "WORLD_SIZE": "-0", "MASTER_ADDR": "a", "MASTER_PORT": "+29500"},
    {"SLURM_NODELIST": "n[1-999999999]", "SLURM_TASKS_PER_NODE": "4(x999999999)"},
    {"SLURM_NODELIST": "n[[1]]", "SLURM_NTASKS": "x"},
    {"SLURM_JOB_ID": "9" * 50, "SLURM_STEP_NODELIST": "[", "JAX_COORDINATOR_ADDRESS": "::::"},
    {"SM_HOSTS": '{"a": 1}'},
    {"SM_HOSTS": '["a", "b", 3]', "SM_CURRENT_HOST": "a"},
    {"CLUSTER_SPEC": "[[[["},
    {"RAY_ADDRESS": "ray://"},
    {"RAY_ADDRESS": "http://[::1"},
    {"JAX_COORDINATOR_ADDRESS": "[fe80::1%eth0]:1234"},
]


@pytest.mark.parametrize("variables", VARIABLES, ids=lambda v: next(iter(v)))
def test_variables_of_any_content(variables: dict[str, str]) -> None:
    from allaboard.check.collect import Gathered

    config = resolve_material(
        "environment", Material.from_environment(variables), configuration_sources()
    )
    findings = judge_configuration(Gathered([config]))
    assert not any("own reader" in f.summary for f in findings), [f.summary for f in findings]
    assert not any("itself failed" in f.summary for f in findings), [f.summary for f in findings]
