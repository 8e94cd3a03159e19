"""Which of a host's addresses the data connections will be made on, of both families."""

from __future__ import annotations

from allaboard.facts import Address
from allaboard.facts.address import join_host_port
from allaboard.hosts.interface_address import interface_address, ipv6_in_table, preferred_address

TABLE = """\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000505400fffe123456 02 40 20 80     eth0
fd770000000000000000000000000008 02 40 00 08     eth0
fd770000000000000000000000000001 02 40 00 80     eth0
fe80000000000000505400fffe654321 03 40 20 80     eth1
"""


def test_an_interface_with_ipv6_alone_has_an_address() -> None:
    assert ipv6_in_table("eth0", TABLE) == "fd77::1", (
        "not the link-local one, nor what another host has too"
    )
    assert ipv6_in_table("eth1", TABLE) == ""
    assert ipv6_in_table("ib7", TABLE) == ""
    assert interface_address("lo") == "127.0.0.1"
    assert interface_address("no-such-one") == ""


def test_of_several_addresses_the_first_of_ipv4_is_told() -> None:
    assert preferred_address(["fd77::1"]) == "fd77::1"
    assert preferred_address(["fd77::1", "10.0.0.1", "10.1.0.1"]) == "10.0.0.1"
    assert preferred_address(["127.0.1.1"]) == "127.0.1.1"
    assert preferred_address(["fd77::1", "127.0.1.1"]) == "fd77::1", "gloo takes the first"
    assert preferred_address(["127.0.1.1", "fd77::1"]) == "127.0.1.1"


def test_an_address_of_ipv6_stands_in_brackets_before_a_port() -> None:
    assert join_host_port("fd77::1", 29500) == "[fd77::1]:29500"
    assert join_host_port("h0", 29500) == "h0:29500"
    assert Address.from_endpoint(join_host_port("fd77::1", 29500)).endpoint == ("fd77::1", 29500)


def test_the_brackets_of_a_name_stay_where_pytorch_keeps_them() -> None:
    assert Address.from_endpoint("[[fd77::1]]:29500").endpoint == ("[fd77::1]", 29500), (
        "a name, which nobody has"
    )
    assert Address.from_endpoint("[fe80::1%eth0]:29500").endpoint == ("fe80::1%eth0", 29500)
