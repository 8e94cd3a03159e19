"""What a run cannot use is one line that names it, and nothing starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from certificates import authority, signed


def _refused(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "run", *words, "script.py"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def _certificates(cert: Path, key: Path, ca: Path) -> list[str]:
    return ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str(ca)]


def test_the_file_that_is_not_there_is_the_one_that_is_named(tmp_path: Path) -> None:
    tls = signed(tmp_path, "host", authority(tmp_path, "ca"))
    absent = tmp_path / "absent.key"
    said = _refused(tmp_path, *_certificates(tls.cert, absent, tls.ca))
    assert f"{absent}: No such file or directory" in said


def test_a_key_with_a_passphrase_is_told_and_nobody_is_asked(tmp_path: Path) -> None:
    tls = signed(tmp_path, "host", authority(tmp_path, "ca"))
    sealed = tmp_path / "sealed.key"
    words = ["openssl", "pkey", "-in", str(tls.key), "-aes256", "-passout", "pass:word"]
    subprocess.run([*words, "-out", str(sealed)], check=True, capture_output=True)
    said = _refused(tmp_path, *_certificates(tls.cert, sealed, tls.ca))
    assert f"{sealed} has a passphrase" in said


def test_a_working_folder_that_was_removed(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    words = f"rmdir {folder} && exec {sys.executable} -P -m allaboard run -n 1 /script.py"
    done = subprocess.run(
        ["sh", "-c", words], capture_output=True, text=True, cwd=folder, timeout=60
    )
    assert done.returncode == 2 and "the working folder has been removed" in done.stderr


def _limited(folder: Path, limit: str) -> subprocess.CompletedProcess[str]:
    """Eight workers that tell how many files they may have open, in a shell with this limit."""
    script = folder / "says.py"
    script.write_text("import resource as r; print('may', r.getrlimit(r.RLIMIT_NOFILE)[0])")
    words = f"ulimit {limit} && exec {sys.executable} -P -m allaboard run -n 8 {script}"
    return subprocess.run(
        ["sh", "-c", words], capture_output=True, text=True, cwd=folder, timeout=120
    )


def test_a_low_soft_limit_on_open_files_is_the_workers_alone(tmp_path: Path) -> None:
    done = _limited(tmp_path, "-Sn 24")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("may 24") == 8


def test_a_hard_limit_that_is_too_low_for_the_workers_is_told(tmp_path: Path) -> None:
    done = _limited(tmp_path, "-n 24")
    assert done.returncode == 2 and "too few for 8 workers" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_certificate_that_no_host_would_accept(tmp_path: Path) -> None:
    ca, other = authority(tmp_path, "ca"), authority(tmp_path, "other")
    tls = signed(tmp_path, "host", ca)
    said = _refused(tmp_path, *_certificates(tls.cert, tls.key, other[1]))
    assert f"{tls.cert} would be refused by every host" in said
    assert "unable to get local issuer certificate" in said
    assert f"openssl verify -show_chain -CAfile {other[1]} {tls.cert}" in said


def test_a_certificate_whose_time_is_over(tmp_path: Path) -> None:
    tls = signed(tmp_path, "host", authority(tmp_path, "ca"), days=-1)
    said = _refused(tmp_path, *_certificates(tls.cert, tls.key, tls.ca))
    assert f"{tls.cert} would be refused by every host" in said
    assert "certificate has expired" in said


def test_a_certificate_for_one_side_only(tmp_path: Path) -> None:
    tls = signed(tmp_path, "host", authority(tmp_path, "ca"), "extendedKeyUsage=serverAuth")
    said = _refused(tmp_path, *_certificates(tls.cert, tls.key, tls.ca))
    assert "certificate purpose (it must allow both serverAuth and clientAuth)" in said


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    one, other = signed(tmp_path, "host", ca), signed(tmp_path, "other", ca)
    said = _refused(tmp_path, *_certificates(one.cert, other.key, one.ca))
    assert f"{other.key} is not the key of {one.cert}" in said
    assert f"on {os.uname().nodename}: " in said


def test_a_secret_that_is_empty_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that a cluster's secret was to fill in, and did not."""
    monkeypatch.setenv("ALLABOARD_SECRET", "\n")
    assert "ALLABOARD_SECRET is set and empty" in _refused(tmp_path)


def test_names_in_certificates(tmp_path: Path) -> None:
    tls = signed(tmp_path, "host", authority(tmp_path, "ca"))
    files = _certificates(tls.cert, tls.key, tls.ca)
    said = _refused(tmp_path, *files, "--tls-names", "node[0-3],other")
    assert f"{tls.cert} would be refused by every host" in said
    assert "it has none of the job's names (--tls-names), but host; sha256:" in said
    assert '"a;b" is no name of a host' in _refused(tmp_path, *files, "--tls-names", "a;b")
    assert "give --tls-key, --tls-cert and --tls-ca too" in _refused(
        tmp_path, "--tls-names", "host"
    )
