"""The address where the ranks meet is written into the script, and belongs to one private network.

## Why it matters
`MASTER_ADDR = "10.1.0.7"` is right as long as rank 0 runs on that host. A scheduler that places the job
elsewhere does not change it: all ranks then wait for a host that takes no part, until the timeout. It also
replaces what a launcher has set. A default of the script's own command line is as easily forgotten. And where
the script counts its ranks over several nodes, localhost is another host on each of them.

## What to do
Leave MASTER_ADDR to the launcher. If the script has to set one, only where none is set:
`os.environ.setdefault("MASTER_ADDR", ...)`.
"""

from __future__ import annotations

import ast
import ipaddress
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.facts.address import is_this_host_alone, parse_address
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.environment_reads import environment_variables_in
from allaboard.formats.python.environment_writes import environment_writes
from allaboard.formats.python.evaluation import evaluate, integer
from allaboard.formats.python.flow.child_processes import launches
from allaboard.formats.python.flow.fixed_ranks import is_unconditional, joins
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_INIT = "torch.distributed.init_process_group"
_JAX_INIT = "jax.distributed.initialize"
_COUNTS = {
    _INIT: (("rank", 4), ("world_size", 3)),
    _JAX_INIT: (("process_id", 2), ("num_processes", 1)),
}
"""Arguments for the rank and the size, by name and position."""
_OF_SEVERAL_NODES = re.compile(
    r"SLURM_(?:NODEID|NNODES|JOB_NUM_NODES)|(?:NODE|GROUP|MACHINE)_RANK|N?NODES|NUM_(?:NODES|MACHINES)"
)
"""Matches variables by which nodes are counted."""
_LAUNCHED = re.compile(r"environ.*RANK|getenv\(.*RANK|SLURM_|OMPI_COMM|PMI_|PALS_")
"""Matches a script whose ranks come from a launcher, which also chooses the hosts."""
_ADDRESS = re.compile(r"(?:tcp://)?\[?(?P<host>[0-9a-fA-F.:]+?)\]?(?::\d+)?(?:\?.*)?\Z")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_process_group" not in facts.source and "distributed.initialize" not in facts.source:
        return
    script = read_script(facts)
    if jax_inits := script.calls_of(_JAX_INIT):
        yield from _loopback_of_nodes(script, jax_inits)
    inits = script.calls_of(_INIT)
    if not inits or _is_for_one_member(script, facts.source):
        return
    for node, value in _stated_addresses(script, inits):
        host = _private_host(evaluate(script, value))
        if host and is_unconditional(script, node):
            yield _claim(
                script,
                node,
                value,
                f"the script itself says that the ranks meet at {host}",
                'os.environ["MASTER_ADDR"]   # as the launcher set it',
            )
            return
    yield from _loopback_of_nodes(script, inits)
    for init in inits:
        option = option_of(script, call_argument(init, "init_method", 1))
        if option is None or option.default is None:
            continue
        host = _private_host(evaluate(script, option.default))
        if host:
            yield _claim(
                script,
                option.call,
                option.default,
                f"without {option.flags[-1]} the ranks meet at {host}",
                f'{option.flags[-1]} "tcp://$MASTER_ADDR:$MASTER_PORT"   # or default="env://"',
            )
            return


def _loopback_of_nodes(script: Script, inits: list[ast.Call]) -> Iterator[Claim]:
    """Report a meeting place on this host alone, where the ranks are counted over several nodes."""
    counted = next(
        (
            (init, variable)
            for init in inits
            for part in (call_argument(init, n, p) for n, p in _COUNTS[script.call_name(init.func)])
            for variable in environment_variables_in(script, part)
            if _OF_SEVERAL_NODES.fullmatch(variable)
        ),
        None,
    )
    if counted is None:
        return
    places = [
        *((w.node, w.value) for w in environment_writes(script, "MASTER_ADDR") if not w.is_default),
        *((i, url) for i in inits if (url := _meeting_url(script, i)) is not None),
    ]
    for node, value in places:
        text = evaluate(script, value)
        host = parse_address(text.removeprefix("tcp://")).host if isinstance(text, str) else ""
        if not host or not is_this_host_alone(host) or not is_unconditional(script, node):
            continue
        yield Claim(
            summary=f"the ranks of several nodes ({counted[1]}) meet at {host}, which is another host on "
            "each of them",
            evidence=(script.evidence_for(value), script.evidence_for(counted[0])),
            fix=_first_host(script, node, counted[1]),
            certainty=Certainty.LIKELY,
            where=script.place_of(value),
        )
        return


def _first_host(script: Script, node: ast.AST, variable: str) -> str:
    """Return the address of the first node for this place, and what sets it."""
    address = 'os.environ["MASTER_ADDR"]'
    if isinstance(node, ast.Call) and script.call_name(node.func) == _JAX_INIT:
        address = f'coordinator_address={address} + ":1234"'
    elif isinstance(node, ast.Call):
        address = 'init_method="env://"'
    how = "the first host, as the launcher sets it"
    if variable.startswith("SLURM_"):
        how = "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
    return f"{address}   # {how}"


def _meeting_url(script: Script, init: ast.Call) -> ast.expr | None:
    is_jax = script.call_name(init.func) == _JAX_INIT
    return call_argument(
        init, "coordinator_address" if is_jax else "init_method", 0 if is_jax else 1
    )


def _claim(script: Script, node: ast.AST, value: ast.expr, summary: str, fix: str) -> Claim:
    return Claim(
        summary=f"{summary}, an address of one private network",
        evidence=(script.evidence_for(node),),
        fix=fix,
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
        where=script.place_of(value),
    )


def _is_for_one_member(script: Script, source: str) -> bool:
    """Return True if the script states its rank, too: it is written for these hosts."""
    return "environ['RANK'] =" in source.replace('"', "'") or any(
        integer(script, join.rank) is not None for join in joins(script)
    )


def _stated_addresses(script: Script, inits: list[ast.Call]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield where the script states an address, with the expression."""
    for write in environment_writes(script, "MASTER_ADDR"):
        if not write.is_default:
            yield write.node, write.value
    if not _LAUNCHED.search("\n".join(script.lines)) or any(launches(script)):
        return  # who starts the ranks by hand, or by the script itself, knows the host
    for init in inits:
        url = call_argument(init, "init_method", 1)
        if url is not None:
            yield init, url


def _private_host(value: object) -> str:
    """Return the host in an address, if it is of a private network and not this host alone; else ""."""
    address = _ADDRESS.match(value) if isinstance(value, str) else None
    if address is None:
        return ""
    try:
        parsed = ipaddress.ip_address(address["host"])
    except ValueError:
        return ""
    alone = parsed.is_loopback or parsed.is_unspecified or parsed.is_link_local
    return str(parsed) if parsed.is_private and not alone else ""


_SCRIPT = """import os
import torch.distributed as dist
os.environ["MASTER_ADDR"] = "ADDRESS"
dist.init_process_group("gloo")
"""

_NODES = """import os
import torch.distributed as dist
os.environ["MASTER_ADDR"] = "localhost"
rank = int(os.environ["SLURM_NODEID"]) * 4 + local
dist.init_process_group("nccl", rank=rank, world_size=4 * int(os.environ["SLURM_NNODES"]))
"""
_OPTION = """import argparse
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--dist-url", default="ADDRESS")
parser.add_argument("--rank", type=int)
args = parser.parse_args()
dist.init_process_group("gloo", init_method=args.dist_url, rank=args.rank, world_size=2)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the ranks of several Slurm nodes meet at localhost": (
            ScriptFacts(source=_NODES),
            "the ranks of several nodes (SLURM_NODEID) meet at localhost, which is another host on each "
            "of them",
        ),
        "the script sets MASTER_ADDR to 192.168.7.20": (
            ScriptFacts(source=_SCRIPT.replace("ADDRESS", "192.168.7.20")),
            "the script itself says that the ranks meet at 192.168.7.20, an address of one private network",
        ),
        "an init URL that is made of constants, with 10.1.0.7": (
            ScriptFacts(
                source="import torch.distributed as dist\nHOST, PORT = '10.1.0.7', 29500\n"
                "dist.init_process_group('gloo', init_method=f'tcp://{HOST}:{PORT}', "
                "rank=int(os.environ['SLURM_PROCID']), world_size=4)\n"
            ),
            "the script itself says that the ranks meet at 10.1.0.7, an address of one private network",
        ),
        "an option of the command line has a private address as its default": (
            ScriptFacts(source=_OPTION.replace("ADDRESS", "tcp://10.4.0.9:29500")),
            "without --dist-url the ranks meet at 10.4.0.9, an address of one private network",
        ),
    },
    silent_on={
        "ranks from Slurm's tasks, perhaps all on one node, meet at localhost": ScriptFacts(
            source=_NODES.replace("SLURM_NODEID", "SLURM_PROCID").replace(
                "SLURM_NNODES", "SLURM_NTASKS"
            )
        ),
        "the ranks of several Slurm nodes meet at the name `node0`": ScriptFacts(
            source=_NODES.replace("localhost", "node0")
        ),
        "an option of the command line has `env://` as its default": ScriptFacts(
            source=_OPTION.replace("ADDRESS", "env://")
        ),
        "`os.environ.setdefault`, which keeps an address that the launcher sets": ScriptFacts(
            source=_SCRIPT.replace("ADDRESS", "10.1.0.7").replace(
                'environ["MASTER_ADDR"] = "10.1.0.7"',
                'environ.setdefault("MASTER_ADDR", "10.1.0.7")',
            )
        ),
        "the script sets MASTER_ADDR to 127.0.0.1": ScriptFacts(
            source=_SCRIPT.replace("ADDRESS", "127.0.0.1")
        ),
        "a script with a fixed rank, for one host of its network": ScriptFacts(
            source=_SCRIPT.replace("ADDRESS", "10.1.0.7").replace('"gloo"', '"gloo", rank=1')
        ),
        "ranks that a person starts by hand, each with its number": ScriptFacts(
            source="import torch.distributed as dist\ndist.init_process_group('gloo', "
            "init_method='tcp://10.1.0.7:29500', rank=int(sys.argv[1]), world_size=2)\n"
        ),
        "the script sets MASTER_ADDR to the name `node0`": ScriptFacts(
            source=_SCRIPT.replace("ADDRESS", "node0")
        ),
        "MASTER_ADDR is set only if the launcher has not set it": ScriptFacts(
            source=_SCRIPT.replace("ADDRESS", "10.1.0.7").replace(
                "os.environ[", 'if "MASTER_ADDR" not in os.environ:\n    os.environ['
            )
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
