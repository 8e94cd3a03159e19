"""Values of options that are more than a word or a number: secrets, certificates, addresses, variables."""

from __future__ import annotations

import argparse
import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.cluster.transport.tls import TlsFiles

TLS = ("cert", "key", "ca")
PURPOSES = {"unsuitable certificate purpose": " (it must allow both serverAuth and clientAuth)"}
"""What OpenSSL's words leave open: of every two hosts one calls the other."""


def parse_variables(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not equals or not name:
            raise_usage_error(f'--env expects NAME=VALUE, as --env NCCL_DEBUG=INFO; got "{pair}"')
    return dict(pair.split("=", 1) for pair in pairs)


def check_values_variable(steps: int | None) -> dict[str, str]:
    """Return the variable that tells the probe how often to compare parameters; {} if it never does."""
    return {} if steps is None else {"ALLABOARD_CHECK_VALUES": str(steps)}


def read_secret(file: Path | None) -> bytes:
    """From the file, else from ALLABOARD_SECRET; empty where there is none. As `same_everywhere` has it."""
    if file is None:
        told = os.environ.get("ALLABOARD_SECRET")
        given = normalize_secret(os.fsencode(told or ""))
        if told is not None and not given:
            raise_usage_error(
                "ALLABOARD_SECRET is set and empty: give it the job's secret, or unset ALLABOARD_SECRET"
            )
        return given
    try:
        text = normalize_secret(file.read_bytes())
    except OSError as error:
        raise_usage_error(f"--secret-file {file} on {os.uname().nodename}: {error.strerror}")
    if not text:
        raise_usage_error(
            f"--secret-file {file} is empty on {os.uname().nodename}; make one: openssl rand -hex 32 > {file}"
        )
    return text


def normalize_secret(text: bytes) -> bytes:
    """A secret without what editors and copies add to a file on one host and not on another: the byte order
    mark before it, the returns in the ends of its lines, blanks around it. What Windows writes as UTF-16 is
    the text that it means."""
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        meant = text.decode("utf-16", errors="replace")
        text = meant.encode() if meant.isascii() else text  # bytes by chance stay as they are
    return text.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").strip()


def add_tls_options(made: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The options of `tls`."""
    whats = (
        "this host's certificate",
        "its key",
        "the authority that signed all hosts' certificates",
    )
    for name, what in zip(TLS, whats, strict=True):
        made.add_argument(
            f"--tls-{name}", metavar="FILE", type=Path, help=f"TLS between hosts: {what} (PEM)"
        )


def read_tls_files(given: argparse.Namespace) -> TlsFiles | None:
    """From the three options, else from ALLABOARD_TLS_CERT, _KEY and _CA; None where none is given."""
    found: dict[str, Path] = {}
    for name in TLS:
        file = getattr(given, f"tls_{name}", None)
        text = os.environ.get(f"ALLABOARD_TLS_{name.upper()}", "")
        if file is not None or text:
            found[name] = file or Path(text)
    if not found:
        return None
    absent = ", ".join(f"--tls-{n}" for n in TLS if n not in found)
    if absent:
        raise_usage_error(f"TLS between hosts wants three files; {absent} is not given")
    from allaboard.cluster.transport.tls import TlsFiles, certificate_fault, is_key_mismatch

    made = TlsFiles(**found)
    here = os.uname().nodename  # under a launcher the words of all hosts come out in one place
    for file in made:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise_usage_error(f"TLS between hosts: on {here}: {file}: {error.strerror}")
        if b"ENCRYPTED" in content:  # PKCS #8 and the older form, RFC 1421, both say so
            plain = f"openssl pkey -in {file} -out PLAIN"
            raise_usage_error(
                f"TLS between hosts: on {here}: {file} wants a passphrase; give a key without one: {plain}"
            )
    try:
        why = certificate_fault(made)
    except OSError as error:
        told = f"{made.key} is not the key of {made.cert}" if is_key_mismatch(error) else ""
        told = told or f"{made.cert}, {made.key}: {error.strerror or error}"
        raise_usage_error(f"TLS between hosts: on {here}: {told}")
    if why:
        raise_usage_error(
            f"TLS between hosts: on {here}: {made.cert} would be refused by every host, going by {made.ca} "
            f"and this host's clock: {why}{PURPOSES.get(why, '')}; look: openssl verify -show_chain -CAfile "
            f"{made.ca} {made.cert}; date"
        )
    return made


def coordinator(address: str, tls: TlsFiles | None = None, named: str = "--coordinator ") -> str:
    """HOST:PORT or etcd://…; what was given (``named`` so), else ALLABOARD_COORDINATOR, else "". ``tls`` are
    the job's certificates."""
    if not address:
        named, address = "ALLABOARD_COORDINATOR=", os.environ.get("ALLABOARD_COORDINATOR", "")
    if "://" in address:
        return _etcd(address, tls, named)
    from allaboard.facts import Address

    if address and not Address.from_endpoint(address).is_complete:
        raise_usage_error(f"{named}{address}: wants HOST:PORT, e.g. {named}node0:29400")
    return address


def _etcd(address: str, tls: TlsFiles | None, named: str) -> str:
    from importlib.util import find_spec

    from allaboard.cluster.transport.etcd_url import is_etcd_url, parse_etcd_url
    from allaboard.configuration.launcher_context import job_id

    if not is_etcd_url(address):
        raise_usage_error(
            f"{named}{address}: wants HOST:PORT, etcd://HOST:PORT/PREFIX, or etcds:// for TLS"
        )
    try:
        place = parse_etcd_url(address)
    except ValueError as error:
        raise_usage_error(f"{named}{address.rpartition('@')[2]}: {error}")
    if find_spec("etcd3gw") is None:
        raise_usage_error(f"{named}{address}: etcd's client is not installed: pip install etcd3gw")
    if place.secure:
        _certificates(tls, f"{named}{address}")
    if not place.prefix and not job_id(os.environ):
        raise_usage_error(
            f"{named}{address}: nothing tells this job from others in that etcd; add a prefix "
            f"that no other job has, the same on every host: {named}{place.text}/my-job"
        )
    return place.text


def _certificates(tls: TlsFiles | None, what: str) -> None:
    """Whether the files for TLS to etcd can be used; a job that waits for its first call learns it late."""
    import ssl

    from allaboard.cluster.transport.etcd import choose_tls_files

    known = choose_tls_files(tls, os.environ)
    context = ssl.create_default_context()
    if known.cert and not known.key:
        raise_usage_error(f"{what}: ETCDCTL_CERT={known.cert} wants its key, too: set ETCDCTL_KEY")
    for name, file in (("ETCDCTL_CACERT", known.ca), ("ETCDCTL_CERT", known.cert)):
        try:
            if file == known.ca and file:
                context.load_verify_locations(file)
            elif file:
                context.load_cert_chain(file, known.key)
        except OSError as error:  # ssl.SSLError is one
            why = error.strerror or str(error)
            raise_usage_error(f"{what}: TLS to etcd: {file} [{name} or --tls-*]: {why}")
