"""The meeting over TLS, with certificates that openssl made for this test."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from allaboard.cluster.transport.client_handshake import (
    HandshakeRefusedError,
    Identity,
    shake_hands,
)
from allaboard.cluster.transport.connect_probe import connect_and_greet
from allaboard.cluster.transport.link_trial import try_link
from allaboard.cluster.transport.listener import Listener
from allaboard.cluster.transport.member_connection import MemberConnection
from allaboard.cluster.transport.peer_names import PeerNamesError, parse_peer_names
from allaboard.cluster.transport.tls import TlsFiles, certificate_fault
from allaboard.cluster.transport.wire import Message
from allaboard.facts import Answer, Knock
from certificates import authority, signed


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    return signed(folder, "host", authority(folder, "ca"))


@pytest.fixture(scope="module")
def strangers(ours: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("other")
    return signed(folder, "host", authority(folder, "ca"))


class Door:
    """A listener, and what it was told."""

    def __init__(self, tls: TlsFiles | None) -> None:
        self.here: list[MemberConnection] = []
        self.knocks: list[str] = []
        self.said: list[Message | None] = []
        self.words: list[str] = []
        self.listener = Listener(
            "", b"", self.here.append, lambda _, word: self.said.append(word), self._knocked, tls
        )

    def _knocked(self, knock: Knock) -> None:
        self.knocks.append(knock.kind)
        self.words.append(f"{knock.claimed_member}: {knock.said}" if knock.host else knock.said)


async def _enter(
    door: Door, tls: TlsFiles | None, only_link: bool = False, secret: bytes = b""
) -> Answer:
    await door.listener.open_port(0, "127.0.0.1")
    address = f"127.0.0.1:{door.listener.port}"
    who = Identity("", secret, "h1", 1, "127.0.0.1:1", "session", tls)
    try:
        if only_link:
            return (await try_link(who, "h0", address)).answer
        met = await connect_and_greet(address)
        assert met.answer is Answer.ABOARD and met.writer is not None
        try:
            await shake_hands(met, who)
            return met.answer
        finally:
            met.writer.close()
            await asyncio.sleep(0.05)
    finally:
        door.listener.close()


def test_both_have_certificates(ours: TlsFiles) -> None:
    door = Door(ours)
    assert asyncio.run(_enter(door, ours)) is Answer.ABOARD
    assert [c.hello.host for c in door.here] == ["h1"] and door.knocks == []


def test_a_link_is_tried_over_tls(ours: TlsFiles) -> None:
    assert asyncio.run(_enter(Door(ours), ours, only_link=True)) is Answer.ABOARD


def test_a_caller_without_one_is_turned_away(ours: TlsFiles) -> None:
    door = Door(ours)
    with pytest.raises(HandshakeRefusedError, match="this host was given no certificate"):
        asyncio.run(_enter(door, None))
    assert door.here == [] and door.knocks == ["no-tls"]
    assert door.words == ["h1 (rank 1): has no certificate, and here one is wanted"]


def test_a_listener_without_one_is_not_trusted(ours: TlsFiles) -> None:
    door = Door(None)
    with pytest.raises(HandshakeRefusedError, match="it speaks no TLS"):
        asyncio.run(_enter(door, ours))
    assert door.knocks == ["no-tls"]


def test_another_authority_is_not_trusted(ours: TlsFiles, strangers: TlsFiles) -> None:
    door = Door(strangers)
    with pytest.raises(HandshakeRefusedError, match="not of our authority"):
        asyncio.run(_enter(door, ours))
    assert door.here == [] and set(door.knocks) == {"no-tls"}
    assert "h1 (rank 1): does not trust the certificate that is shown here: " in door.words[-1]


def test_a_listener_without_the_secret_is_told_who_leaves_it() -> None:
    door = Door(None)
    with pytest.raises(HandshakeRefusedError, match="the listener does not know the job's secret"):
        asyncio.run(_enter(door, None, secret=b"secret"))
    assert door.here == [] and door.knocks == ["no-secret"]


def test_a_callers_certificate_is_checked_too(ours: TlsFiles, strangers: TlsFiles) -> None:
    door = Door(ours)
    forged = TlsFiles(strangers.cert, strangers.key, ours.ca)  # it trusts us, we do not trust it
    with pytest.raises(HandshakeRefusedError, match="our certificate is not taken there: "):
        asyncio.run(_enter(door, forged))
    assert door.here == [] and set(door.knocks) == {"no-tls"}
    assert "h1 (rank 1): shows a certificate that is not taken here: " in door.words[-1]


@pytest.fixture(scope="module")
def evil(ours: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """A certificate of the same authority for a host of another job."""
    key = ours.ca.with_suffix(".key")
    names = "subjectAltName=DNS:build7.corp.example,IP:10.0.0.7"
    return signed(tmp_path_factory.mktemp("evil"), "evil", (key, ours.ca), names)


def named(files: TlsFiles, names: str) -> TlsFiles:
    return files._replace(names=parse_peer_names(names))


def fingerprint(files: TlsFiles) -> str:
    shown = subprocess.run(
        ["openssl", "x509", "-in", str(files.cert), "-noout", "-fingerprint", "-sha256"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return f"sha256:{shown.stdout.partition('=')[2].strip()}"


@pytest.mark.parametrize(
    "names", ["host", "HOST.", "node[0-3],host", "*.corp.example,host", "10.0.0.9,host"]
)
def test_a_host_with_one_of_the_names_takes_part(ours: TlsFiles, names: str) -> None:
    assert asyncio.run(_enter(Door(named(ours, names)), named(ours, names))) is Answer.ABOARD


@pytest.mark.parametrize("name", ["build7.corp.example", "*.corp.example", "10.0.0.7"])
def test_alternative_names_count_and_then_the_common_one_does_not(
    evil: TlsFiles, name: str
) -> None:
    assert certificate_fault(named(evil, name)) == ""
    for other in ("evil", "corp.example", "*.example", "10.0.0.70"):
        assert certificate_fault(named(evil, other)).startswith("it has none of the job's names")


def test_a_certificate_may_be_pinned(ours: TlsFiles, evil: TlsFiles) -> None:
    pin = fingerprint(ours)
    assert certificate_fault(named(ours, pin)) == ""
    assert (
        certificate_fault(named(ours, pin.lower().replace(":", "").replace("sha256", "sha256:", 1)))
        == ""
    )
    assert "build7.corp.example, 10.0.0.7; sha256:" in certificate_fault(named(evil, pin))


def test_a_caller_with_another_name_is_turned_away(ours: TlsFiles, evil: TlsFiles) -> None:
    door = Door(named(ours, "host"))
    with pytest.raises(HandshakeRefusedError, match="none of the job's names") as refused:
        asyncio.run(_enter(door, evil))
    assert (refused.value.kind, refused.value.is_proven) == ("tls-name", True)
    assert door.here == [] and door.knocks == ["tls-name"]
    assert "build7.corp.example, 10.0.0.7; sha256:" in door.words[0]


def test_no_link_is_tested_for_it_either(ours: TlsFiles, evil: TlsFiles) -> None:
    door = Door(named(ours, "host"))
    assert asyncio.run(_enter(door, evil, only_link=True)) is not Answer.ABOARD


def test_a_leader_with_another_name_is_not_followed(ours: TlsFiles, evil: TlsFiles) -> None:
    door = Door(evil)
    with pytest.raises(HandshakeRefusedError, match="its certificate has none of") as refused:
        asyncio.run(_enter(door, named(ours, "host")))
    assert refused.value.kind == "tls-name"
    assert door.here == [] and door.knocks == ["tls-name"]
    assert door.words[0].startswith("h1 (rank 1): is shown a certificate here with none of")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("", "it names no host"),
        ("node[0-", "brackets"),
        ("a b;c", '"b;c" is no name of a host'),
        ("sha256:12ab", '"sha256:12ab" is no name'),
        ("node0:29500", '"node0:29500" is no name'),
    ],
)
def test_what_is_no_name_is_refused(names: str, message: str) -> None:
    with pytest.raises(PeerNamesError, match=message):
        parse_peer_names(names)
