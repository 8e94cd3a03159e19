"""TensorFlow's names of the jobs of a cluster, and what people write in their place."""

from __future__ import annotations

import re

from allaboard.late_pattern import compile_late

_NAMES = {
    "worker": "worker",
    "ps": "ps",
    "pserver": "ps",
    "paramserver": "ps",
    "parameterserver": "ps",
    "server": "ps",
    "chief": "chief",
    "master": "chief",
    "eval": "evaluator",
    "evaluator": "evaluator",
}
"""Names as people write them, in small letters and without separators."""
_ENDING = compile_late(
    r"(?:hosts?|nodes?|list|addresses|address|addrs?|tasks?|replicas?|ips?|spec)\Z"
)
"""What names of variables and flags add: ``worker_hosts``, ``ps_list``."""


def plain_job_name(job: str) -> str:
    """Return TensorFlow's name of the job that is meant; "" if the job has that name, or none is meant."""
    words = re.sub(r"[\W_]+", "", job.lower())
    shortened = _ENDING.sub("", words)
    for text in (words, words.removesuffix("s"), shortened, shortened.removesuffix("s")):
        name = _NAMES.get(text, "")
        if name and name != job:
            return name
        if name:
            return ""
    return ""


def is_job_name(name: str) -> bool:
    """Return True if the name is one of TensorFlow's jobs, or stands for one."""
    return name in _NAMES.values() or bool(plain_job_name(name))
