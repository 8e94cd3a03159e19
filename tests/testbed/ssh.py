"""sshd on every host of a bed, and a client that may log in on all of them as root."""

from __future__ import annotations

import subprocess

from testbed.bed import Bed
from testbed.requirements import program
from testbed.wait_until import listens, until

PORT = 22
NEEDS = ("sshd", "ssh", "ssh-keygen")
_SERVER = """\
Port 22
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PermitRootLogin yes
StrictModes no
UsePAM no
UseDNS no
PidFile none
AcceptEnv PYTHONPATH
"""
_CLIENT = """\
Host *
  User root
  IdentityFile {folder}/client
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR
  SendEnv PYTHONPATH
"""


class Ssh:
    """``command`` begins a login: ``bed.run("h0", *ssh.command, "h2", "hostname")``. The hosts' keys
    are known and verified."""

    def __init__(self, bed: Bed) -> None:
        """Starts the servers. Raises CannotMake, or FileNotFoundError with the package to install."""
        folder = bed.folder / "ssh"
        folder.mkdir(mode=0o700)
        for name in ("host", "client"):
            file = ["-f", str(folder / name)]
            words = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", *file]
            subprocess.run(words, check=True)
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        known = "".join(f"{h},{bed.addresses[h]} {key}\n" for h in bed.hosts)
        (folder / "known_hosts").write_text(known)
        (folder / "sshd_config").write_text(_SERVER.format(folder=folder))
        (folder / "ssh_config").write_text(_CLIENT.format(folder=folder))
        self.command = (program("ssh"), "-F", str(folder / "ssh_config"))
        servers = []
        for host in bed.hosts:
            bed.path(host, "/run/sshd").mkdir(mode=0o755)
            words = [program("sshd"), "-D", "-e", "-f", str(folder / "sshd_config")]
            servers.append(bed.start(host, words))
        until(lambda: all(listens(bed.first(h), PORT) for h in bed.hosts), servers, "sshd", 10)
