"""The server, the cluster and the sessions of a distributed script of TensorFlow 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from allaboard.facts import ScriptFacts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.written_tf_config import dict_entries

_SERVER = "tensorflow.train.Server"
_MANAGED_SESSIONS = re.compile(
    r"MonitoredTrainingSession|MonitoredSession|Supervisor\(|SessionManager"
)


def server_script(facts: ScriptFacts) -> Script | None:
    """Return the script if it makes a server of TensorFlow 1; None for any other."""
    if "train.Server" not in facts.source:
        return None
    script = read_script(facts)
    return script if script.calls_of(_SERVER) else None


def cluster_jobs(script: Script) -> Mapping[str, ast.expr]:
    """Return the jobs of the script's ClusterSpec, as far as it is written out."""
    for call in script.calls_of("tensorflow.train.ClusterSpec"):
        entries = dict_entries(script, call.args[0]) if call.args else None
        if entries is not None:
            return {job: resolve(script, value) for job, (_, value) in entries.items()}
    return {}


def plain_session(script: Script, source: str) -> ast.Call | None:
    """Return the script's one `tf.Session` on the server, if nothing manages sessions."""
    if _MANAGED_SESSIONS.search(source):
        return None
    for call in script.calls_of("tensorflow.Session", "tensorflow.InteractiveSession"):
        target = call_argument(call, "target", 0)
        if target is not None and (
            "target" in ast.unparse(target) or "grpc" in ast.unparse(target)
        ):
            return call
    return None
