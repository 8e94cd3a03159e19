"""Certificates for a test, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from allaboard.cluster.transport.tls import TlsFiles


def authority(folder: Path, name: str) -> tuple[Path, Path]:
    """A key and a certificate that may sign. Skips where there is no openssl to make them."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl: apt-get install openssl")
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    # Python 3.13 is strict about both (RFC 5280), where a library does not choose otherwise.
    words += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    _openssl("req", *words, "-keyout", str(key), "-out", str(cert))
    return key, cert


def signed(
    folder: Path, name: str, by: tuple[Path, Path], extension: str = "", days: int = 2
) -> TlsFiles:
    """A host's files, signed by this authority; ``extension`` as openssl writes it."""
    key, asked, cert = (folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
    words = ["-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    _openssl("req", *words, "-keyout", str(key), "-out", str(asked))
    signer = ["-CA", str(by[1]), "-CAkey", str(by[0]), "-CAcreateserial"]
    if extension:
        (folder / f"{name}.ext").write_text(extension)
        signer += ["-extfile", str(folder / f"{name}.ext")]
    _openssl("x509", "-req", "-in", str(asked), *signer, "-days", str(days), "-out", str(cert))
    return TlsFiles(cert, key, by[1])


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
