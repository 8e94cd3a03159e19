"""Of several DDP models, which backward concerns which: on the real PyTorch, in a group of one."""

from __future__ import annotations

import importlib.util
import types

import pytest

from allaboard.blackbox.collective_calls import CallReader
from allaboard.probe.adapters._torch.backward_reach import due, reaches
from probed import Program

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="not on this machine: torch"
)
START = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo", "tcp://127.0.0.1:0", rank=0, world_size=1)
maker = DDP(torch.nn.Linear(2, 2))  # 6 parameters
judge = DDP(torch.nn.Linear(2, 1))  # 3 parameters
rows = torch.ones(4, 2)
"""
MAKER, JUDGE = 6, 3


def elements(program: Program, code: str, start: str = START) -> list[int]:
    """How many parameters each DDP backward was counted with, in their order."""
    ended = program.run(start + code)
    assert ended.code == 0, ended.err
    box = program.box(ended.pid)
    (group,) = box.read_snapshot().groups
    trace = CallReader(box.map).trace_group(*group.key)
    assert trace is not None
    calls = [call for _, call in trace.calls if call is not None]
    assert len(calls) == len(trace.calls)
    return [call.elements for call in calls if call.op == "DDP backward"]


STEP = """
made = maker(rows)
judge(made.detach()).sum().backward()
judge(made).sum().backward()
"""


def test_of_two_models_only_the_one_whose_turn_it_is_counts(program: Program) -> None:
    assert elements(program, STEP * 2) == [JUDGE, MAKER, JUDGE] * 2


def test_an_output_that_is_only_logged_counts_for_nothing(program: Program) -> None:
    """One rank may log what the others do not: neither the calls nor their order differ by that."""
    assert elements(program, "judge(rows).mean().item()" + STEP) == [JUDGE, MAKER, JUDGE]
    both = "maker(rows)\njudge(rows).mean().item()\nmaker(rows).sum().backward()\n"
    assert elements(program, both) == [MAKER]


ONE = START.replace("judge = DDP(torch.nn.Linear(2, 1))  # 3 parameters\n", "")


def test_a_backward_of_something_else_after_an_output_of_the_only_model(program: Program) -> None:
    """One rank may train a probe on what its model puts out: no gradients go round in that."""
    assert "judge" not in ONE
    probe = (
        "maker(rows).sum().backward()\n"
        "probe = torch.nn.Linear(2, 1)\n"
        "probe(maker(rows).detach()).sum().backward()\n"
        "maker(rows).sum().backward()\n"
    )
    assert elements(program, probe, ONE) == [MAKER, MAKER]


def test_the_only_model_whose_graph_is_hidden_is_due(program: Program) -> None:
    hidden = (
        "from torch.utils.checkpoint import checkpoint\n"
        "rows.requires_grad_()\n"
        "for _ in range(2):\n"
        "    checkpoint(lambda x: torch.nn.functional.relu(x), maker(rows), use_reentrant=True)"
        ".sum().backward()\n"
    )
    assert elements(program, hidden, ONE) == [MAKER, MAKER]


def test_a_gradient_that_comes_to_no_parameter_is_none_of_a_model(program: Program) -> None:
    penalty = (
        "rows.requires_grad_()\n"
        "score = judge(rows).sum()\n"
        "(slope,) = torch.autograd.grad(score, rows, create_graph=True)\n"
        "(score + slope.square().sum()).backward()\n"
    )
    assert elements(program, penalty) == [JUDGE]


def test_from_a_place_in_the_graph(program: Program) -> None:
    edge = "torch.autograd.backward(torch.autograd.graph.get_gradient_edge(judge(rows).sum()))"
    assert elements(program, f"maker(rows)\n{edge}") == [JUDGE]


def test_where_the_graph_does_not_tell_nothing_is_concluded(program: Program) -> None:
    hidden = (
        "from torch.utils.checkpoint import checkpoint\n"
        "rows.requires_grad_()\n"
        "maker(rows)\n"
        "checkpoint(lambda r: r * 2, judge(rows), use_reentrant=True).sum().backward()\n"
    )
    for code, proves in ((STEP, True), (hidden + STEP, False)):
        ended = program.run(START + code)
        assert ended.code == 0, ended.err
        (group,) = program.box(ended.pid).read_snapshot().groups
        assert (group.unordered == 0) is proves


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
