"""Clients of etcd's HTTP gateway: one for each endpoint, with the files for TLS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from allaboard.cluster.transport.etcd_url import EtcdUrl
from allaboard.cluster.transport.tls import TlsFiles
from allaboard.errors import AllaboardError

ENDPOINT_TIMEOUT_S = 2.0
"""Seconds that one endpoint gets to answer."""


class MissingEtcdClientError(AllaboardError):
    """The etcd client library is not installed; the message says how to install it."""


class EtcdTlsFiles(NamedTuple):
    """Files for TLS to etcd."""

    ca: str
    """Authority that signed etcd's certificate; "" for those of the system."""
    cert: str
    """Our own certificate; "" to show none."""
    key: str
    """Key of ``cert``."""


def choose_tls_files(tls: TlsFiles | None, environment: Mapping[str, str]) -> EtcdTlsFiles:
    """Return the files to use: those of etcdctl's variables, else those of the job (``tls``), for each side
    alone."""
    job_files = (
        EtcdTlsFiles(str(tls.ca), str(tls.cert), str(tls.key))
        if tls is not None
        else EtcdTlsFiles("", "", "")
    )
    ca = environment.get("ETCDCTL_CACERT") or job_files.ca
    cert, key = environment.get("ETCDCTL_CERT", ""), environment.get("ETCDCTL_KEY", "")
    return EtcdTlsFiles(ca, cert, key) if cert else EtcdTlsFiles(ca, job_files.cert, job_files.key)


def make_clients(
    url: EtcdUrl, environment: Mapping[str, str] = os.environ, tls: TlsFiles | None = None
) -> list[Any]:
    """Return one client per endpoint; no connection is made yet. Raises MissingEtcdClientError."""
    try:
        import requests
        from etcd3gw.client import Etcd3Client
    except ImportError as error:
        raise MissingEtcdClientError(
            f"{url.text} needs the etcd client ({error}): pip install 'allaboard[etcd]'"
        ) from None
    clients = []
    for host, port in url.endpoints:
        session = requests.Session()
        # requests would follow http_proxy from the environment, which does not know the job's network.
        session.trust_env = False
        if url.secure:
            tls_files = choose_tls_files(tls, environment)
            session.verify = tls_files.ca or True
            if tls_files.cert:
                session.cert = (tls_files.cert, tls_files.key)
        protocol = "https" if url.secure else "http"
        clients.append(
            Etcd3Client(host, port, protocol, timeout=ENDPOINT_TIMEOUT_S, session=session)
        )
    return clients
