"""The file of a file:// rendezvous is on a file system whose locks do not reach the other hosts.

## Why it matters
The ranks take turns by locking the file (fcntl). On a file system without locks that all hosts share (NFS
mounted with `nolock`, s3fs, gcsfuse, sshfs and the like), two ranks write at once, the file is corrupted,
and all wait.

## What to do
Meet over TCP: `tcp://HOST-OF-RANK-0:29500`. With NFS, mount it without `nolock`.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import count_hosts, own_member
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ConfigFacts, Evidence, FilePlace, Severity
from allaboard.facts.configuration.config_facts import sample_config_facts

_FILESYSTEMS_WITHOUT_LOCKS = (
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.goofys",
    "fuse.sshfs",
    "fuse.rclone",
    "9p",
)


def check(facts: ConfigFacts) -> Iterator[Claim]:
    rendezvous_file, url = facts.place, facts.spec.values.get("init_url")
    if rendezvous_file is None or url is None:
        return
    options = rendezvous_file.options.split(",")
    nfs = rendezvous_file.filesystem.startswith("nfs") and (
        "nolock" in options or "local_lock=all" in options
    )
    lone = rendezvous_file.filesystem == "tmpfs" and count_hosts(facts.spec) > 1
    if rendezvous_file.filesystem not in _FILESYSTEMS_WITHOUT_LOCKS and not nfs and not lone:
        return
    why = "is only in this host's memory" if lone else "has no locks that other hosts see"
    yield Claim(
        summary=f"the rendezvous file is on {rendezvous_file.filesystem}, which {why}",
        who=own_member(facts.spec),
        evidence=(
            url.evidence,
            Evidence(rendezvous_file.options or rendezvous_file.filesystem, "/proc/self/mountinfo"),
        ),
        fix="init_method='tcp://HOST-OF-RANK-0:29500'",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=url.origin.editor_place,
    )


def _facts(filesystem: str, options: str = "rw") -> ConfigFacts:
    rendezvous_file = FilePlace(path="/shared/rdzv", filesystem=filesystem, options=options)
    return sample_config_facts(
        init_url="file:///shared/rdzv", place=rendezvous_file, source="init_url"
    )


RULE = Rule(
    reads=ConfigFacts,
    check=check,
    fires_on={
        "an NFS mount with the option `nolock`": (
            _facts("nfs", "rw,nolock,vers=3"),
            "the rendezvous file is on nfs, which has no locks that other hosts see",
        ),
        "a storage bucket, mounted by gcsfuse": (
            _facts("fuse.gcsfuse"),
            "the rendezvous file is on fuse.gcsfuse, which has no locks that other hosts see",
        ),
    },
    silent_on={
        "an NFS mount whose locks the server keeps": _facts("nfs4", "rw,vers=4.2,local_lock=none"),
        "a local disk with ext4": _facts("ext4"),
    },
)
