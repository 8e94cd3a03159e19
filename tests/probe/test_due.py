"""Of several DDP models, which backward concerns which: on the real PyTorch, in a group of one."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from allaboard.blackbox.collective_calls import CallReader
from allaboard.probe.adapters._torch.backward_reach import due, reaches
from installed_frameworks import needs_torch
from probed import Program

pytestmark = needs_torch
GROUP = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
"""
START = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
maker = DDP(torch.nn.Linear(2, 2))  # 6 parameters
judge = DDP(torch.nn.Linear(2, 1))  # 3 parameters
rows = torch.ones(4, 2)
"""
MAKER, JUDGE = 6, 3


STEP = """
made = maker(rows)
judge(made.detach()).sum().backward()
judge(made).sum().backward()
"""
ONE = START.replace("judge = DDP(torch.nn.Linear(2, 1))  # 3 parameters\n", "")
PROGRAMS = {
    "two models": START + STEP * 2,
    "an output that is only logged": START + "judge(rows).mean().item()" + STEP,
    "an output of the other that is only logged": (
        START + "maker(rows)\njudge(rows).mean().item()\nmaker(rows).sum().backward()\n"
    ),
    "a probe on what the only model puts out": (
        ONE + "maker(rows).sum().backward()\n"
        "probe = torch.nn.Linear(2, 1)\n"
        "probe(maker(rows).detach()).sum().backward()\n"
        "maker(rows).sum().backward()\n"
    ),
    "a penalty on the slope": (
        START + "rows.requires_grad_()\n"
        "score = judge(rows).sum()\n"
        "(slope,) = torch.autograd.grad(score, rows, create_graph=True)\n"
        "(score + slope.square().sum()).backward()\n"
    ),
    "a model that went forward and is gone": (
        START + "import gc\njudge(rows).mean().item()\ndel judge\ngc.collect()\n"
        "from torch.utils.checkpoint import checkpoint\n"
        "for _ in range(2):\n"
        "    checkpoint(lambda x: x.relu(), maker(rows), use_reentrant=True).sum().backward()\n"
    ),
    "a place in the graph": (
        START + "maker(rows)\n"
        "torch.autograd.backward(torch.autograd.graph.get_gradient_edge(judge(rows).sum()))\n"
    ),
}
ONE_AFTER_ANOTHER = """
import gc
for name, code in programs.items():
    exec(code, {})
    gc.collect()  # no model outlives its program
    dist.barrier()  # ends what is counted for this one
"""


def counted(program: Program, code: str) -> tuple[list[list[int]], bool]:
    """How many parameters each DDP backward was counted with, in their order, up to each barrier and after
    the last one; and True if the order of the calls proves something."""
    ended = program.run(GROUP + code)
    assert ended.code == 0, ended.err
    box = program.box(ended.pid)
    (group,) = box.read_snapshot().groups
    trace = CallReader(box.map).trace_group(*group.key)
    assert trace is not None
    calls = [call for _, call in trace.calls if call is not None]
    assert len(calls) == len(trace.calls)
    parts: list[list[int]] = [[]]
    for call in calls:
        if call.op == "barrier":
            parts.append([])
        elif call.op == "DDP backward":
            parts[-1].append(call.elements)
    return parts, group.unordered == 0


class Shared(NamedTuple):
    """What was counted of the programs that run in one process."""

    elements: dict[str, list[int]]
    """Of each program, how many parameters each DDP backward was counted with, in their order."""
    proves: bool
    """True if the order of all calls proves something."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """PyTorch takes seconds to load: it does so once for all programs that leave nothing behind."""
    program = Program(tmp_path_factory.mktemp("due"))
    parts, proves = counted(program, f"programs = {PROGRAMS!r}\n{ONE_AFTER_ANOTHER}")
    *parts, rest = parts
    assert rest == []
    yield Shared(dict(zip(PROGRAMS, parts, strict=True)), proves)
    program.close()


def test_of_two_models_only_the_one_whose_turn_it_is_counts(shared: Shared) -> None:
    assert shared.elements["two models"] == [JUDGE, MAKER, JUDGE] * 2


def test_an_output_that_is_only_logged_counts_for_nothing(shared: Shared) -> None:
    """One rank may log what the others do not: neither the calls nor their order differ by that."""
    assert shared.elements["an output that is only logged"] == [JUDGE, MAKER, JUDGE]
    assert shared.elements["an output of the other that is only logged"] == [MAKER]


def test_a_backward_of_something_else_after_an_output_of_the_only_model(shared: Shared) -> None:
    """One rank may train a probe on what its model puts out: no gradients go round in that."""
    assert "judge" not in ONE
    assert shared.elements["a probe on what the only model puts out"] == [MAKER, MAKER]


def test_the_only_model_whose_graph_is_hidden_is_due(program: Program) -> None:
    hidden = (
        "from torch.utils.checkpoint import checkpoint\n"
        "rows.requires_grad_()\n"
        "for _ in range(2):\n"
        "    checkpoint(lambda x: torch.nn.functional.relu(x), maker(rows), use_reentrant=True)"
        ".sum().backward()\n"
    )
    assert counted(program, ONE + hidden)[0] == [[MAKER, MAKER]]


def test_a_gradient_that_comes_to_no_parameter_is_none_of_a_model(shared: Shared) -> None:
    assert shared.elements["a penalty on the slope"] == [JUDGE]


def test_a_model_that_is_gone_has_no_turn(shared: Shared) -> None:
    """What the graph hides is the other's, the only one that is left."""
    assert shared.elements["a model that went forward and is gone"] == [MAKER, MAKER]


def test_from_a_place_in_the_graph(shared: Shared) -> None:
    assert shared.elements["a place in the graph"] == [JUDGE]


def test_where_the_graph_does_not_tell_nothing_is_concluded(
    shared: Shared, program: Program
) -> None:
    hidden = (
        "from torch.utils.checkpoint import checkpoint\n"
        "rows.requires_grad_()\n"
        "maker(rows)\n"
        "checkpoint(lambda r: r * 2, judge(rows), use_reentrant=True).sum().backward()\n"
    )
    assert shared.proves
    _, proves = counted(program, START + hidden + STEP)
    assert not proves


def test_a_way_leads_to_a_parameter_of_the_model_or_it_proves_nothing() -> None:
    weight, bias = object(), object()
    leaf = Node(variable=weight)
    root = Node((None, 0), (Node((Node(variable=bias), 0), (leaf, 0)), 0))
    owners, ways = {id(weight): 7, id(bias): 8}, dict[int, tuple[int, ...]]()
    assert due([Node(grad_fn=root)], owners, [7], 1, ways) == {7}
    assert ways == {7: (1, 1)}
    for graph, expected in (
        (root, True),
        (Node((None, 0), (Node((leaf, 0), (Node(variable=bias), 0)), 0)), False),
        (Node((None, 0), (None, 0)), False),
        (Node((root, 0)), False),
        (leaf, False),
    ):
        assert reaches(Node(grad_fn=graph), ways[7], owners, 7) is expected


def test_a_way_from_another_root_than_the_first_is_not_kept() -> None:
    weight, ways = object(), dict[int, tuple[int, ...]]()
    roots = [Node(grad_fn=Node()), Node(grad_fn=Node((Node(variable=weight), 0)))]
    assert due(roots, {id(weight): 7}, [7], 1, ways) == {7}
    assert ways == {}


class Node(types.SimpleNamespace):
    """A tensor, or a node of autograd's graph with its edges."""

    def __init__(self, *edges: tuple[object, int], **fields: object) -> None:
        super().__init__(next_functions=edges, **fields)

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
