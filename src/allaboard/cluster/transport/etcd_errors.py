"""What the exceptions of the etcd client library mean, in words for people."""

from __future__ import annotations

import json

from allaboard.cluster.transport.etcd_clients import ENDPOINT_TIMEOUT_S

KEY_ROOT = "allaboard"


def explain_error(error: Exception) -> tuple[str, str]:
    """Return what an exception of the client library means: kind and message."""
    detail = str(getattr(error, "detail_text", "") or "")
    try:
        payload = json.loads(detail)["error"]
        detail = str(payload["message"] if isinstance(payload, dict) else payload)
    except (ValueError, TypeError, KeyError):
        pass
    lower_text = error_text(error)
    # etcd's own words; etcd/api/v3rpc/rpctypes/error.go
    if "authentication failed" in lower_text or "invalid auth token" in lower_text:
        return "auth", "it does not know this user or password (ETCDCTL_USER)"
    if "user name is empty" in lower_text:
        return "auth", "it requires a user: set ETCDCTL_USER=name:password"
    if "permission denied" in lower_text:
        return (
            "auth",
            f"this user may not write keys under /{KEY_ROOT}: etcdctl role grant-permission",
        )
    if "authentication is not enabled" in lower_text:
        return "auth", "it knows no users; unset ETCDCTL_USER"
    if "database space exceeded" in lower_text:
        return "full", "its database is full, it takes no new keys (alarm NOSPACE)"
    if "http request to an https server" in lower_text:
        return "tls", "it speaks TLS, and etcd:// does not: write etcds://"
    if "certificate" in lower_text or "ssl" in lower_text:
        return "tls", f"TLS does not come about: {_root_cause(detail or str(error))}"
    name = type(error).__name__
    if name in ("ConnectionFailedError", "ConnectionTimeoutError"):
        return "unreachable", _root_cause(detail) or name
    if "etcdserver: " in lower_text:
        return "unreachable", detail[:200]
    if name in ("ApiVersionDiscoveryFailedError", "JSONDecodeError", "Etcd3Exception", "KeyError"):
        excerpt = " ".join((detail or str(error) or name).split())[:80]
        return "no-etcd", f"what answers there is no etcd: {ascii(excerpt)[1:-1]}"
    return "unreachable", detail[:200] or _root_cause(str(error)) or name


def error_text(error: Exception) -> str:
    """Return all that an exception of the client library says, in lower case."""
    return f"{getattr(error, 'detail_text', '') or ''} {error}".lower()


def _root_cause(text: str) -> str:
    """Return the system's own words, out of the messages of several libraries around them."""
    for phrase in (
        "Connection refused",
        "No route to host",
        "Network is unreachable",
        "Name or service not known",
        "Temporary failure in name resolution",
        "No address associated with hostname",
        "Remote end closed connection",
        "Connection reset by peer",
    ):
        if phrase in text:
            return phrase.lower()
    if "timed out" in text.lower():
        return f"no answer in {ENDPOINT_TIMEOUT_S:g} s"
    return text.rpartition(": ")[2].strip("()'\" ")[:200]
