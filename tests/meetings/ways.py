"""The table of the ways: what the agent's environment says, what the script says itself, and where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

Framework = Literal["torch", "tensorflow", "jax"]
PORT, FORWARDED_PORT = 29500, 28476
PUBLIC = ("10.99.0.1", "10.99.0.2")
"""Addresses of the two hosts as they are called from everywhere, where they are translated."""


class Place(NamedTuple):
    """Where the two agents are, and how the ranks call each other."""

    name: str
    hosts: int
    addresses: tuple[str, str]
    """Host names or addresses of rank 0 and rank 1."""
    is_translated: bool = False
    listens_at: int = PORT
    """Port at which rank 0 listens; another than `PORT` where that is translated, too."""


PLACES = (
    Place("loopback", 1, ("127.0.0.1", "127.0.0.1")),
    Place("localhost", 1, ("localhost", "localhost")),
    Place("own-name", 1, ("h0", "h0")),
    Place("two-hosts", 2, ("h0", "h1")),
    Place("nat", 2, PUBLIC, is_translated=True),
    Place("nat-port", 2, PUBLIC, is_translated=True, listens_at=FORWARDED_PORT),
)


class Setting(NamedTuple):
    """What one rank is started with."""

    rank: int
    place: Place
    shared: str
    """A path that all hosts share."""

    @property
    def address(self) -> str:
        """``host:port`` where the ranks meet."""
        return f"{self.place.addresses[0]}:{PORT}"

    @property
    def tf_config(self) -> str:
        """The TF_CONFIG of this rank: two workers with a port each."""
        workers = [f"{a}:{PORT + i}" for i, a in enumerate(self.place.addresses)]
        return json.dumps(
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": self.rank}}
        )

    @property
    def torch_variables(self) -> dict[str, str]:
        """RANK and WORLD_SIZE."""
        return {"RANK": str(self.rank), "WORLD_SIZE": "2"}

    @property
    def master(self) -> dict[str, str]:
        """MASTER_ADDR and MASTER_PORT."""
        return {"MASTER_ADDR": self.place.addresses[0], "MASTER_PORT": str(PORT)}


class Way(NamedTuple):
    """One way of one framework."""

    framework: Framework
    environment: Callable[[Setting], Mapping[str, str]]
    """What a launcher would put into the environment of the agent."""
    script: Callable[[Setting], Mapping[str, object]]
    """What the script is told, as `jobs/meets.py` reads it."""
    has_address: bool = True
    """False where no address is used, so that one place of each number of hosts is enough."""


def _nothing(setting: Setting) -> dict[str, str]:
    return {}


def _jax_arguments(setting: Setting) -> dict[str, object]:
    told: dict[str, object] = {"address": setting.address, "rank": setting.rank, "size": 2}
    return told | {"bind": f"0.0.0.0:{setting.place.listens_at}"}


def _jax_variables(setting: Setting) -> dict[str, str]:
    variables = {
        "JAX_COORDINATOR_ADDRESS": setting.address,
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": str(setting.rank),
    }
    if setting.place.listens_at != PORT:
        variables["JAX_COORDINATOR_BIND_ADDRESS"] = f"0.0.0.0:{setting.place.listens_at}"
    return variables


def _torch(setting: Setting, **told: object) -> dict[str, object]:
    return {"rank": setting.rank, "size": 2, **told}


WAYS: Mapping[str, Way] = {
    "torch-arguments": Way("torch", _nothing, lambda s: _torch(s, method=f"tcp://{s.address}")),
    "torch-code": Way("torch", _nothing, lambda s: {"variables": s.torch_variables | s.master}),
    "torch-environment": Way("torch", lambda s: s.torch_variables | s.master, lambda s: {}),
    "torch-address-in-code": Way(
        "torch", lambda s: s.torch_variables, lambda s: {"variables": s.master}
    ),
    "torch-rank-in-code": Way(
        "torch", lambda s: s.master, lambda s: {"variables": s.torch_variables}
    ),
    "torch-query": Way(
        "torch", _nothing, lambda s: {"method": f"tcp://{s.address}?rank={s.rank}&world_size=2"}
    ),
    "torch-pairs": Way(
        "torch",
        _nothing,
        lambda s: {
            "spawned": [2 * s.rank, 2 * s.rank + 1],
            "size": 4,
            "method": f"tcp://{s.address}",
        },
    ),
    "torch-pairs-backwards": Way(
        "torch",
        _nothing,
        lambda s: {
            "spawned": [2 * s.rank + 1, 2 * s.rank],
            "size": 4,
            "method": f"tcp://{s.address}",
        },
    ),
    "torch-mpi": Way(
        "torch",
        lambda s: {"OMPI_COMM_WORLD_RANK": str(s.rank), "OMPI_COMM_WORLD_SIZE": "2"},
        lambda s: _torch(s, method=f"tcp://{s.address}"),
    ),
    "torch-store": Way("torch", _nothing, lambda s: _torch(s, store=s.address)),
    "torch-store-environment": Way(
        "torch", lambda s: s.torch_variables, lambda s: _torch(s, store=s.address)
    ),
    "torch-file": Way(
        "torch", _nothing, lambda s: _torch(s, method=f"file://{s.shared}"), has_address=False
    ),
    "torch-file-environment": Way(
        "torch",
        lambda s: s.torch_variables,
        lambda s: _torch(s, method=f"file://{s.shared}"),
        has_address=False,
    ),
    "torch-file-store": Way(
        "torch", _nothing, lambda s: _torch(s, file_store=s.shared), has_address=False
    ),
    "jax-arguments": Way("jax", _nothing, _jax_arguments),
    "jax-code": Way("jax", _nothing, lambda s: {"variables": _jax_variables(s)}),
    "jax-environment": Way("jax", _jax_variables, lambda s: {}),
    "jax-rank-in-code": Way(
        "jax", lambda s: {"JAX_COORDINATOR_ADDRESS": s.address}, _jax_arguments
    ),
    "tensorflow-code": Way(
        "tensorflow", _nothing, lambda s: {"variables": {"TF_CONFIG": s.tf_config}}
    ),
    "tensorflow-environment": Way("tensorflow", lambda s: {"TF_CONFIG": s.tf_config}, lambda s: {}),
    "tensorflow-resolver": Way("tensorflow", _nothing, lambda s: {"resolver": s.tf_config}),
}


def meetings() -> Iterator[tuple[str, Place]]:
    """Yield every way with every place that it can have."""
    for name, way in WAYS.items():
        for place in PLACES:
            if not way.has_address and place.name not in ("loopback", "two-hosts"):
                continue
            # Of the three only JAX can be told to listen at another port than the others call.
            if place.listens_at != PORT and way.framework != "jax":
                continue
            yield name, place
