"""Jobs as Slurm itself shows them: `scontrol show job` of one that failed, `squeue` of those that wait."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Severity, Speaker, Testimony

_JOB = re.compile(
    r"^[ \t]*JobState=(?P<state>[A-Z_]{3,20}) Reason=(?P<reason>\S{1,120})", re.MULTILINE
)
_JOB_ID = re.compile(r"\bJobId=(?P<id>\d+(?:_\d+)?)")
_FIELD = r"\b{}=(?P<value>\S+)"
_ENDS = {
    "FAILED": ("EXIT003", "failed"),
    "TIMEOUT": ("EXIT001", "was ended at its time limit"),
    "OUT_OF_MEMORY": ("RES001", "was ended for lack of memory"),
    "NODE_FAIL": ("EXIT010", "was ended because a node failed"),
    "BOOT_FAIL": ("JOIN001", "did not start: its nodes did not boot"),
    "PREEMPTED": ("EXIT001", "was ended for one of a higher priority"),
    "DEADLINE": ("EXIT001", "was ended at its deadline"),
}
"""Rules and words by the state of a job."""
_QUEUE_HEAD = re.compile(r"^[ \t]*JOBID\b[^\n]*\bNODELIST\(REASON\)[ \t]*$", re.MULTILINE)
_QUEUE_ROW = re.compile(
    r"^[ \t]*(?P<id>\d[\d_\[\]%,-]*) [^\n]*\b(?:PD"
    r"|PENDING)\b[^\n]*\((?P<reason>[A-Za-z][^()\n]{1,160})\)[ \t]*$",
    re.MULTILINE,
)
_NEVER = (
    (
        r"QOS\w*Limit|Assoc\w*Limit|AssocGrp\w*|QOSGrp\w*|QOSMax\w*|MaxJobs\w*",
        "a limit of its account or QOS is used up",
        "sacctmgr show assoc user=$USER format=account,qos%30,grptres%40,maxtres%40,maxjobs; squeue -u "
        "$USER   "
        "# end or wait for other jobs of that account, or ask for less, or take another --account or --qos",
    ),
    (
        r"Partition(?:TimeLimit|NodeLimit|Down|Inactive|Config)",
        "the partition does not take such a job",
        "scontrol show partition NAME | grep -E 'MaxTime|MaxNodes|State'   # --time and --nodes within "
        "these, or another --partition: scontrol update JobId={id} TimeLimit=...",
    ),
    (
        r"ReqNodeNotAvail|Nodes required for job are DOWN|BadConstraints|NodeDown|Reserved for maintenance",
        "nodes that it needs are down, drained or reserved",
        "sinfo -R; scontrol show res; scontrol show job {id} | grep -E 'ReqNodeList|Features|TRES'   # "
        "other nodes (-w, --constraint, --exclude), a time limit that ends before a maintenance, or wait",
    ),
    (
        r"DependencyNeverSatisfied",
        "the job on which it depends has failed",
        "scontrol show job {id} | grep Dependency; scancel {id}   # then submit both again, with "
        "--dependency=afterok:JOB (afterany goes on after a failure, too)",
    ),
    (
        r"launch failed requeued held|JobHeld\w*|launch_failed\w*|held state",
        "it is held",
        "scontrol show job {id} | grep -E 'Reason|Requeue|BatchHost'; sinfo -R   # a launch that failed: "
        "mend the node (its slurmd's log), then scontrol release {id}",
    ),
)
"""Reasons for which a job may wait for ever: words, what they mean, what to do."""
MAX_OTHER_LINES = 6
"""Lines besides the table of a text that is nothing but the table."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    heard = tuple(_ended(exhibit, text) if "JobState=" in text else ())
    heard = heard or tuple(_waiting(exhibit, text) if "(REASON)" in text else ())
    return Testimony(heard=heard) if heard else None


def _ended(exhibit: Exhibit, text: str) -> Iterator[Heard]:
    """Yield how the job that `scontrol show job` shows ended, if it did not end well."""
    match = _JOB.search(text)
    if match is None or match["state"] not in _ENDS:
        return
    rule, ending = _ENDS[match["state"]]
    identity = _JOB_ID.search(text)
    job = identity["id"] if identity is not None else ""
    code, host = _field(text, "ExitCode"), _field(text, "BatchHost")
    log = _field(text, "StdErr")
    how = f", exit code {code.partition(':')[0]}" if code.partition(":")[0] not in ("", "0") else ""
    read = (
        f"tail -50 {log}"
        if re.fullmatch(r"/[\w./@%+=-]+", log)
        else "read the file of --error or --output"
    )
    yield _heard(
        exhibit,
        text,
        match.start(),
        match[0],
        rule,
        f"job {job or 'of this listing'} {ending} ({match['reason']}{how})".replace(
            "job of", "the job of"
        ),
        f"{read}; sacct -j {job or 'JOB'} -o JobID,JobName,State,ExitCode,MaxRSS,NodeList   # which step "
        f"ended first, and how; if its log is empty: ssh {host or 'HOST'} journalctl -u slurmd -n 50 (a "
        "folder that is missing there)",
    )


def _waiting(exhibit: Exhibit, text: str) -> Iterator[Heard]:
    """Yield why the first job of a table waits, if it may wait for ever and the table is all there is."""
    head = _QUEUE_HEAD.search(text)
    if head is None:
        return
    lines = sum(bool(line.strip()) for line in text.split("\n"))
    table = sum(
        1 for line in text[head.end() :].split("\n") if re.match(r"\s*\d+[\d_\[\]%,-]* ", line)
    )
    if lines - table - 1 > MAX_OTHER_LINES:
        return
    for row in _QUEUE_ROW.finditer(text, head.end()):
        for pattern, meaning, fix in _NEVER:
            if re.search(pattern, row["reason"]):
                yield _heard(
                    exhibit,
                    text,
                    row.start(),
                    row[0].strip(),
                    "JOIN001",
                    f"job {row['id']} is not started: {meaning} ({row['reason']})",
                    fix.format(id=row["id"]),
                )
                return


def _field(text: str, name: str) -> str:
    match = re.search(_FIELD.format(name), text)
    return match["value"] if match is not None else ""


def _heard(
    exhibit: Exhibit, text: str, start: int, line: str, rule: str, says: str, fix: str
) -> Heard:
    line_place = exhibit.place_of_line(text.count("\n", 0, start))
    return Heard(
        rule=rule,
        says=says,
        speakers=(Speaker(-1, " ".join(line.split())[:300], line_place),),
        fix=fix,
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        explains=("LOG012",),
    )


READER = LogReader(read=read_log)
