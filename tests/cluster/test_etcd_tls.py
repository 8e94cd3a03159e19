"""TLS to a real etcd that wants certificates of its clients: etcdctl's, or the job's own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from allaboard.cluster.transport.etcd import EtcdLeaseStore
from allaboard.cluster.transport.etcd_clients import choose_tls_files
from allaboard.cluster.transport.etcd_url import EtcdUrl
from allaboard.cluster.transport.leader_lease import LeaderRecord, LeaseStoreError
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.options.option_values import check_coordinator
from allaboard.options.usage_error import UsageError
from certificates import authority, signed
from real_etcd import started

pytestmark = pytest.mark.skipif(
    shutil.which("etcd") is None, reason="no etcd: apt-get install etcd-server"
)


class Sealed(NamedTuple):
    """An etcd behind TLS, and the files of a client that it knows."""

    port: int
    ours: TlsFiles
    strangers: TlsFiles


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    folder = tmp_path_factory.mktemp("sealed")
    ca, other = authority(folder, "ca"), authority(folder, "other")
    server = signed(folder, "etcd", ca, "subjectAltName=IP:127.0.0.1")
    with started(folder / "data", tls=server) as port:
        yield Sealed(port, signed(folder, "ours", ca), signed(folder, "stranger", other))


def seats(
    port: int, tls: TlsFiles | None, variables: dict[str, str] | None = None, secure: bool = True
) -> EtcdLeaseStore:
    return EtcdLeaseStore(
        EtcdUrl((("127.0.0.1", port),), "tls", secure), "job=1", variables or {}, tls
    )


def trouble(one: EtcdLeaseStore) -> tuple[str, str]:
    """What it says; who is too busy to answer in time is asked again, as agents do."""
    for _ in range(5):
        with pytest.raises(LeaseStoreError) as caught:
            asyncio.run(one.read_leader())
        if caught.value.kind != "unreachable":
            break
    return caught.value.kind, str(caught.value)


def test_the_certificates_of_the_job_are_shown(sealed: Sealed) -> None:
    async def whole() -> None:
        one = seats(sealed.port, sealed.ours)
        seat = LeaderRecord(address="a:1", session="s", host="a", job="job=1")
        assert await one.acquire_lease(seat) and await one.renew_lease()
        assert await seats(sealed.port, sealed.ours).read_leader() == seat
        one.release_lease()

    asyncio.run(whole())


def test_those_of_etcdctl_come_first(sealed: Sealed) -> None:
    cert, key, ca = map(str, sealed.ours[:3])
    variables = {"ETCDCTL_CACERT": ca, "ETCDCTL_CERT": cert, "ETCDCTL_KEY": key}
    assert asyncio.run(seats(sealed.port, sealed.strangers, variables).read_leader()) is None
    assert choose_tls_files(sealed.strangers, {"ETCDCTL_CACERT": ca}) == (
        ca,
        *map(str, sealed.strangers[:2]),
    )


def test_what_does_not_fit_is_told(sealed: Sealed) -> None:
    for one in (
        seats(sealed.port, None),  # its authority is not one of the system's
        seats(sealed.port, sealed.strangers),
    ):
        assert trouble(one)[0] == "tls", trouble(one)
    assert "write etcds://" in trouble(seats(sealed.port, sealed.ours, secure=False))[1]


def test_a_certificate_that_it_wants_is_told(sealed: Sealed) -> None:
    kind, said = trouble(seats(sealed.port, None, {"ETCDCTL_CACERT": str(sealed.ours.ca)}))
    # etcd's answer is an alert of TLS, which a library may see as a closed connection.
    assert kind == "tls" or "may require a client certificate" in said


def test_an_etcd_without_tls_is_told(tmp_path: Path, sealed: Sealed) -> None:
    with started(tmp_path / "plain") as port:
        assert trouble(seats(port, sealed.ours))[0] == "tls"


def test_files_that_cannot_be_used_are_refused_before_anything_starts(
    sealed: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_coordinator("etcds://node9/x", sealed.ours) == "etcds://node9:2379/x"
    monkeypatch.setenv("ETCDCTL_CACERT", str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match=r"none\.pem \[ETCDCTL_CACERT or --tls-\*\]: No such file"):
        check_coordinator("etcds://node9/x")
    assert check_coordinator("etcd://node9/x") == "etcd://node9:2379/x"
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    monkeypatch.setenv("ETCDCTL_CACERT", str(garbage))
    with pytest.raises(UsageError, match="TLS to etcd"):
        check_coordinator("etcds://node9/x")
    monkeypatch.delenv("ETCDCTL_CACERT")
    monkeypatch.setenv("ETCDCTL_CERT", str(sealed.ours.cert))
    with pytest.raises(UsageError, match="set ETCDCTL_KEY"):
        check_coordinator("etcds://node9/x")
