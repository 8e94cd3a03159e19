"""The address of a meeting in etcd, as people write it."""

from __future__ import annotations

import pytest

from allaboard.cluster.transport.etcd_url import EtcdUrl, is_etcd_url, parse_etcd_url
from allaboard.options.option_values import check_coordinator
from allaboard.options.usage_error import UsageError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("etcd://node9", EtcdUrl((("node9", 2379),), "", False)),
        ("etcd://node9:4001/jobs/mine/", EtcdUrl((("node9", 4001),), "jobs/mine", False)),
        ("etcds://a,b:1,c", EtcdUrl((("a", 2379), ("b", 1), ("c", 2379)), "", True)),
        ("etcd://[fd00::1]:2379/x", EtcdUrl((("fd00::1", 2379),), "x", False)),
    ],
)
def test_is_read(text: str, wanted: EtcdUrl) -> None:
    assert parse_etcd_url(text) == wanted
    assert parse_etcd_url(wanted.text) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("etcd://", "nothing is no HOST:PORT"),
        ("etcd://:2379/x", ":2379 is no HOST:PORT"),
        ("etcd://node9:0/x", "node9:0 is no HOST:PORT"),
        ("etcd://node9:port/x", "node9:port is no HOST:PORT"),
        ("etcd://node9:99999/x", "node9:99999 is no HOST:PORT"),
        ("etcd://a,,b", "nothing is no HOST:PORT"),
        ("etcd://me:secret@node9/x", "no user here"),
        ("etcd://node9/my job", "letters, digits"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse_etcd_url(text)
    assert "secret" not in str(caught.value)


def test_other_addresses_are_no_etcd() -> None:
    assert is_etcd_url("etcd://a") and is_etcd_url("etcds://a")
    assert not any(map(is_etcd_url, ("", "a:1", "http://a", "etcd:1", "[::1]:2379")))


def test_an_option_that_cannot_work_is_refused_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ALLABOARD_JOB_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALLABOARD_COORDINATOR", "etcd://node9/of-all")
    assert check_coordinator("") == "etcd://node9:2379/of-all"
    assert check_coordinator("node0:1") == "node0:1"
    for text, said in (
        ("http://node9:2379", "expected HOST:PORT, etcd://HOST:PORT/PREFIX"),
        ("etcd://node9", "--coordinator etcd://node9:2379/my-job"),
        ("etcd://me:secret@node9/x", "ETCDCTL_USER"),
        ("etcd://node9:2379:1/x", "is no HOST:PORT"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            check_coordinator(text)
        assert "secret" not in str(caught.value)
    monkeypatch.setenv("ALLABOARD_JOB_ID", "41")
    assert check_coordinator("etcd://node9") == "etcd://node9:2379"
