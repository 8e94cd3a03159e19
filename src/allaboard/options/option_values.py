"""Values of options that are more than a word or a number: secrets, certificates, addresses, variables."""

from __future__ import annotations

import argparse
import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.cluster.transport.peer_names import PeerNames
    from allaboard.cluster.transport.tls import TlsFiles

DEFAULT_PAGE_PORT = 8701
"""Port of the page of `--web` if none is named and it is free."""
TLS_PARTS = ("cert", "key", "ca")
PURPOSE_EXPLANATIONS = {
    "unsuitable certificate purpose": " (it must allow both serverAuth and clientAuth)"
}
"""What OpenSSL's message leaves out: of every two hosts one connects to the other."""


def parse_variables(pairs: list[str]) -> dict[str, str]:
    """Return the variables of --env. Raises UsageError for a pair that is not NAME=VALUE."""
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not equals or not name:
            raise_usage_error(f'--env expects NAME=VALUE, as --env NCCL_DEBUG=INFO; got "{pair}"')
    return dict(pair.split("=", 1) for pair in pairs)


def check_values_variable(steps: int | None) -> dict[str, str]:
    """Return the variable that tells the probe how often to compare parameters; {} if it never does."""
    return {} if steps is None else {"ALLABOARD_CHECK_VALUES": str(steps)}


def read_secret(file: Path | None) -> bytes:
    """Return the job's secret, from the file or else from ALLABOARD_SECRET, normalized by
    `normalize_secret`; b"" if there is none.

    Raises:
        UsageError: the file cannot be read, or the file or the variable is empty.
    """
    if file is None:
        variable = os.environ.get("ALLABOARD_SECRET")
        secret = normalize_secret(os.fsencode(variable or ""))
        if variable is not None and not secret:
            raise_usage_error(
                "ALLABOARD_SECRET is set and empty: give it the job's secret, or unset ALLABOARD_SECRET"
            )
        return secret
    try:
        text = normalize_secret(file.read_bytes())
    except OSError as error:
        raise_usage_error(f"--secret-file {file} on {os.uname().nodename}: {error.strerror}")
    if not text:
        raise_usage_error(
            f"--secret-file {file} is empty on {os.uname().nodename}; make one: openssl rand -hex 32 > {file}"
        )
    return text


def normalize_secret(secret: bytes) -> bytes:
    """Return the secret without what editors and copying add to a file on one host and not on another.

    That is a byte order mark, carriage returns at the ends of lines, and surrounding blanks. A UTF-16 file,
    as Windows writes, is decoded.
    """
    if secret.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        decoded = secret.decode("utf-16", errors="replace")
        secret = (
            decoded.encode() if decoded.isascii() else secret
        )  # bytes by chance stay as they are
    return secret.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").strip()


def add_tls_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare the options that `read_tls_files` reads."""
    descriptions = (
        "this host's certificate",
        "its key",
        "the authority that signed all hosts' certificates",
    )
    for name, description in zip(TLS_PARTS, descriptions, strict=True):
        parser.add_argument(
            f"--tls-{name}",
            metavar="FILE",
            type=Path,
            help=f"TLS between hosts: {description} (PEM)",
        )
    parser.add_argument(
        "--tls-names",
        metavar="LIST",
        help="TLS between hosts: names of which each host's certificate must have one, as node[0-3],"
        "*.example.org, or sha256:HEX of a whole certificate",
    )


def add_web_option(add: Callable[..., argparse.Action], explanation: str) -> None:
    """Declare ``--web [PORT]``. ``add`` is the `add_argument` of a parser or of a group."""
    add(
        "--web",
        nargs="?",
        const="",
        metavar="PORT",
        help=f"{explanation} at 127.0.0.1:PORT (default: {DEFAULT_PAGE_PORT}, or a free port if that is "
        "taken); --web=HOST:PORT serves other hosts too. Needs aiohttp: pip install 'allaboard[web]'",
    )


def read_tls_files(options: argparse.Namespace) -> TlsFiles | None:
    """Return the files of --tls-key, --tls-cert and --tls-ca, or of ALLABOARD_TLS_CERT, _KEY and _CA, with
    the names of --tls-names or ALLABOARD_TLS_NAMES; None if there are none.

    Raises:
        UsageError: one of the three is missing or cannot be read, or other hosts would refuse the
            certificate.
    """
    paths: dict[str, Path] = {}
    for name in TLS_PARTS:
        file = getattr(options, f"tls_{name}", None)
        text = os.environ.get(f"ALLABOARD_TLS_{name.upper()}", "")
        if file is not None or text:
            paths[name] = file or Path(text)
    listed = getattr(options, "tls_names", None) or os.environ.get("ALLABOARD_TLS_NAMES", "")
    if not paths:
        if getattr(options, "tls_names", None) is not None:
            raise_usage_error(
                "--tls-names are names in certificates: give --tls-key, --tls-cert and --tls-ca too"
            )
        return None
    missing = ", ".join(f"--tls-{n}" for n in TLS_PARTS if n not in paths)
    if missing:
        raise_usage_error(f"TLS between hosts needs three files; give {missing} too")
    from allaboard.cluster.transport.tls import TlsFiles, certificate_fault, is_key_mismatch

    files = TlsFiles(**paths, names=_parse_tls_names(listed) if listed else None)
    host = os.uname().nodename  # under a launcher the messages of all hosts come out in one place
    for file in (files.cert, files.key, files.ca):
        try:
            content = file.read_bytes()
        except OSError as error:
            raise_usage_error(f"TLS between hosts: on {host}: {file}: {error.strerror}")
        if b"ENCRYPTED" in content:  # PKCS #8 and the older form, RFC 1421, both say so
            command = f"openssl pkey -in {file} -out PLAIN"
            raise_usage_error(
                f"TLS between hosts: on {host}: {file} has a passphrase; use a key without one: {command}"
            )
    try:
        fault = certificate_fault(files)
    except OSError as error:
        reason = f"{files.key} is not the key of {files.cert}" if is_key_mismatch(error) else ""
        reason = reason or f"{files.cert}, {files.key}: {error.strerror or error}"
        raise_usage_error(f"TLS between hosts: on {host}: {reason}")
    if fault:
        raise_usage_error(
            f"TLS between hosts: on {host}: {files.cert} would be refused by every host, going by {files.ca} "
            f"and this host's clock: {fault}{PURPOSE_EXPLANATIONS.get(fault, '')}; see: "
            f"openssl verify -show_chain -CAfile {files.ca} {files.cert}; date"
        )
    return files


def _parse_tls_names(text: str) -> PeerNames:
    from allaboard.cluster.transport.peer_names import PeerNamesError, parse_peer_names

    try:
        return parse_peer_names(text)
    except PeerNamesError as error:
        raise_usage_error(f"--tls-names {text[:80]}: {error}; e.g. --tls-names 'node[0-3]'")


def check_coordinator(
    address: str, tls: TlsFiles | None = None, option: str = "--coordinator "
) -> str:
    """Return the address where all hosts meet: HOST:PORT, an etcd URL, or "" if none is given.

    ``option`` is how the address was given, for messages; if ``address`` is empty, ALLABOARD_COORDINATOR is
    read. ``tls`` are the job's certificates, which etcds:// uses too.

    Raises:
        UsageError: the address is malformed, or etcd cannot be used.
    """
    if not address:
        option, address = "ALLABOARD_COORDINATOR=", os.environ.get("ALLABOARD_COORDINATOR", "")
    if "://" in address:
        return _check_etcd_url(address, tls, option)
    if not address:
        return ""  # before the import: the workers wait for it
    from allaboard.facts import Address

    if not Address.from_endpoint(address).is_complete:
        raise_usage_error(f"{option}{address}: expected HOST:PORT, e.g. {option}node0:29400")
    return address


def check_feed_address(address: str, is_sealed: bool) -> str:
    """Return the HOST:PORT of --feed; "" if none is given. ``is_sealed``: the job has a secret or
    certificates.

    Raises:
        UsageError: the address is malformed, or would show the job to everyone who reaches the port.
    """
    if not address:
        return ""  # before the import: the workers wait for it
    from allaboard.facts import Address

    endpoint = Address.from_endpoint(address)
    if not endpoint.host or not endpoint.port.isdecimal() or int(endpoint.port) > 65535:
        raise_usage_error(f"--feed {address}: expected HOST:PORT, e.g. --feed 127.0.0.1:8700")
    is_loopback = endpoint.host in ("localhost", "::1") or endpoint.host.startswith("127.")
    if not is_loopback and not is_sealed:
        raise_usage_error(
            f"--feed {address} would show the job to everyone who reaches that port; give the job a secret: "
            "openssl rand -hex 32 > job.secret, and --secret-file job.secret"
        )
    return address


def _check_etcd_url(address: str, tls: TlsFiles | None, option: str) -> str:
    from importlib.util import find_spec

    from allaboard.cluster.transport.etcd_url import is_etcd_url, parse_etcd_url
    from allaboard.configuration.launcher_context import job_id

    if not is_etcd_url(address):
        raise_usage_error(
            f"{option}{address}: expected HOST:PORT, etcd://HOST:PORT/PREFIX, or etcds:// for TLS"
        )
    try:
        url = parse_etcd_url(address)
    except ValueError as error:
        raise_usage_error(f"{option}{address.rpartition('@')[2]}: {error}")
    if find_spec("etcd3gw") is None:
        raise_usage_error(f"{option}{address}: etcd's client is not installed: pip install etcd3gw")
    if url.secure:
        _check_etcd_certificates(tls, f"{option}{address}")
    if not url.prefix and not job_id(os.environ):
        raise_usage_error(
            f"{option}{address}: nothing distinguishes this job from others in that etcd; add a prefix "
            f"that no other job has, the same on every host: {option}{url.text}/my-job"
        )
    return url.text


def _check_etcd_certificates(tls: TlsFiles | None, typed: str) -> None:
    """Raise UsageError if the files for TLS to etcd cannot be used. A job that only finds out at its first
    call to etcd has waited for nothing."""
    import ssl

    from allaboard.cluster.transport.etcd_clients import choose_tls_files

    files = choose_tls_files(tls, os.environ)
    context = ssl.create_default_context()
    if files.cert and not files.key:
        raise_usage_error(f"{typed}: ETCDCTL_CERT={files.cert} needs its key too: set ETCDCTL_KEY")
    for name, file in (("ETCDCTL_CACERT", files.ca), ("ETCDCTL_CERT", files.cert)):
        try:
            if file == files.ca and file:
                context.load_verify_locations(file)
            elif file:
                context.load_cert_chain(file, files.key)
        except OSError as error:  # ssl.SSLError is one
            reason = error.strerror or str(error)
            raise_usage_error(f"{typed}: TLS to etcd: {file} [{name} or --tls-*]: {reason}")
