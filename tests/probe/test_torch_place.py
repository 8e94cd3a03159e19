"""Where PyTorch's members mean to meet, by their environment, as a place is written."""

from __future__ import annotations

import pytest

from allaboard.probe.adapters import torch


@pytest.mark.parametrize(
    ("told", "place", "local"),
    [
        ("node0", "tcp://node0:29500", False),
        ("fd77::1", "tcp://[fd77::1]:29500", False),
        ("fe80::1%eth0", "tcp://[fe80::1%eth0]:29500", False),
        ("::1", "tcp://[::1]:29500", True),
        # PyTorch takes them for a part of the name.
        ("[fd77::1]", "tcp://[[fd77::1]]:29500", False),
    ],
)
def test_an_address_of_ipv6_stands_in_brackets(
    told: str, place: str, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    for name, value in (("MASTER_ADDR", told), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    found = torch.read_declaration(("gloo",), {"rank": 0, "world_size": 2})
    assert found is not None and found["place"] == place and found["local"] is local


@pytest.mark.parametrize(
    ("started_here", "local"), [("", True), ("2", True), ("1", False), ("two", True)]
)
def test_a_launcher_that_starts_only_some_of_the_ranks_has_others_elsewhere(
    started_here: str, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", started_here)
    for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    found = torch.read_declaration(("gloo",), {"rank": 0, "world_size": 2})
    assert found is not None and found["local"] is local


@pytest.mark.parametrize(
    ("given", "several", "member"),
    [
        ({"store": object()}, "3", False),
        ({"store": object()}, "1", False),
        ({"init_method": "tcp://127.0.0.1:4711"}, "3", False),
        ({"init_method": "tcp://127.0.0.1:29500"}, "3", True),  # its size is wrong
        ({}, "3", True),
        ({"init_method": "tcp://127.0.0.1:4711"}, "1", True),
    ],
)
def test_a_world_of_one_with_a_place_of_its_own_is_no_part_of_the_job(
    given: dict[str, object], several: str, member: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29500"),
        ("WORLD_SIZE", several),
    ):
        monkeypatch.setenv(name, value)
    told = torch.read_declaration(("gloo",), {"rank": 0, "world_size": 1, **given})
    assert (told is not None) is member


def test_the_interface_is_read_at_init(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"init_method": "tcp://10.0.0.1:29500", "rank": 0, "world_size": 2}
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert (torch.read_declaration(("gloo",), told) or {})["interface"] == ""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth1")  # as a script does with os.environ
    assert (torch.read_declaration(("gloo",), told) or {})["interface"] == "eth1"
