"""How `kubectl describe` shows pods whose containers ended, and jobs of Kubeflow's operators that failed."""

from __future__ import annotations

import re
import signal

from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Speaker, Testimony

_SIGNAL_OFFSET = 128
_NAME = re.compile(r"^Name: {2,}(?P<pod>[\w.-]{1,253}) *$", re.MULTILINE)
_ENDED = re.compile(
    r"(?P<kind>State|Last State): {2,}Terminated\s+Reason: {2,}(?P<reason>\w{1,40})"
    r"\s+(?:Message: [^\n]{0,300}\s+)?Exit Code: {2,}(?P<code>\d{1,3})\b"
)
_WAITING = re.compile(
    r"State: {2,}Waiting\s+Reason: {2,}(?P<reason>ErrImagePull|ImagePullBackOff|InvalidImageName"
    r"|ErrImageNeverPull|CreateContainerConfigError|CreateContainerError|RunContainerError)\b"
)
_IMAGE = re.compile(r"^ {2,}Image: {2,}(?P<image>[\w./:@-]{1,300}) *$", re.MULTILINE)
_TOLD_BY_EVENTS = ("Failed to pull image", "Back-off pulling image", "Error: ")
"""Events that say more than the state."""
_KNOWN_INIT = "Back-off restarting failed container init-"
"""Event of an operator's init container, which waits for another pod."""
_INIT_CONTAINERS, _CONTAINERS = "\nInit Containers:", "\nContainers:"
_JOB_FAILED = re.compile(
    r"(?P<kind>[A-Z]\w{1,20}Job) (?:(?P<namespace>[\w-]{1,63})/)?(?P<job>[\w.-]{1,253}) (?:has"
    r"|is) failed because (?P<count>\d{1,6}) (?P<replica>\w{1,30}) replica\(s\) failed"
)
_POD_EXITED = re.compile(
    r"\bPod: (?:[\w-]{1,63}\.)?(?P<pod>[\w-]{1,253}) exited with code (?P<code>[1-9]\d{0,2})\b"
    r"|\bphase:? Failed for pod:? (?P<pod2>[\w-]{1,253})"
)
"""What Kubeflow's operators log of a pod."""
_EVICTED_POD = re.compile(r"Reason: {2,}Evicted\s+Message: {2,}(?P<why>[^\n]{1,200})")
_EVICTED_FOR = {"memory": "RES001", "ephemeral-storage": "RES004"}
"""Rules by the resource that ran out on the node."""
_EVICTED_WORKERS = re.compile(r"(?P<count>\d{1,6})/(?P<all>\d{1,6}) workers are evicted")
_JOB_NAME = re.compile(r"\bMPIJob (?:[\w-]{1,63}/)?(?P<job>[\w.-]{1,253}) is ")
_JOB_WENT_ON = re.compile(
    r"\bis (?:running|restarting|created)\b|successfully completed|Succeeded\b"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = (
        *_ended_container(exhibit),
        *_waiting_container(exhibit),
        *_evicted(exhibit),
        *(_failed_job(exhibit) or _exited_pod(exhibit)),
    )
    return Testimony(heard=heard) if heard else None


def _ended_container(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return how a container of the pod that is described ended, if it failed."""
    text = exhibit.text
    if "Exit Code: " not in text:
        return ()
    named = _NAME.search(text)
    failed = [m for m in _ENDED.finditer(text) if int(m["code"]) != 0]
    if not failed or _KNOWN_INIT in text:
        return ()
    match, pod = failed[-1], named["pod"] if named is not None else "POD"
    who = f"the pod {pod}" if named is not None else "a pod"
    is_init = text.rfind(_INIT_CONTAINERS, 0, match.start()) > text.rfind(
        _CONTAINERS, 0, match.start()
    )
    code = int(match["code"])
    ended = f"exit code {code}"
    rule, why = "EXIT003", "its program failed"
    if match["reason"] == "OOMKilled":
        rule, why = "RES001", "its container went beyond its limit of memory"
    elif code > _SIGNAL_OFFSET and code - _SIGNAL_OFFSET in {int(s) for s in signal.Signals}:
        rule, why = "EXIT001", f"{signal.Signals(code - _SIGNAL_OFFSET).name} ended it"
    elif is_init:
        rule, why = "JOIN001", "its init container failed, so that its program was never started"
    container = " -c INIT_CONTAINER" if is_init else ""
    look = f"kubectl logs {pod}{container} --previous"
    if rule == "RES001":
        look = (
            f"kubectl get pod {pod} -o yaml | grep -A4 limits   # raise limits.memory, or need less"
        )
    number = text.count("\n", 0, match.start())
    return (
        Heard(
            rule=rule,
            says=f"{who} fails ({match['reason']}, {ended}): {why}",
            speakers=(
                Speaker(-1, " ".join(match[0].split())[:300], exhibit.place_of_line(number)),
            ),
            fix=f"{look}   # the log of the run that ended" if rule != "RES001" else look,
            certainty=Certainty.CERTAIN,
            explains=("LOG012",),
        ),
    )


def _waiting_container(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return why the pod that is described was never started, if its events do not say it."""
    text = exhibit.text
    match, named = _WAITING.search(text), _NAME.search(text)
    if match is None or named is None or any(words in text for words in _TOLD_BY_EVENTS):
        return ()
    image = next((m["image"] for m in _IMAGE.finditer(text, 0, match.start())), "")
    lacks = (
        f"its image {image}".rstrip()
        if "Image" in match["reason"]
        else "what its container asks for"
    )
    number = text.count("\n", 0, match.start())
    return (
        Heard(
            rule="JOIN001",
            says=f"the pod {named['pod']} was never started: Kubernetes does not get {lacks} "
            f"({match['reason']})",
            speakers=(Speaker(-1, " ".join(match[0].split()), exhibit.place_of_line(number)),),
            fix=f"kubectl get events --field-selector involvedObject.name={named['pod']}   # a wrong name or "
            "tag, a registry that needs a password (imagePullSecrets), or a missing Secret or ConfigMap",
            certainty=Certainty.CERTAIN,
            explains=("LOG012",),
        ),
    )


def _evicted(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return that the pod which is described, or workers of the job, had to leave their nodes."""
    text = exhibit.text
    if "Evicted" not in text and " are evicted" not in text:
        return ()
    match, named = _EVICTED_POD.search(text), _NAME.search(text)
    if match is not None and named is not None:
        pod = named["pod"]
        says = f"Kubernetes evicted the pod {pod}: {match['why'].strip().rstrip('.')}"
        rule = next((r for word, r in _EVICTED_FOR.items() if word in match["why"]), "EXIT001")
        fix = (
            f"kubectl describe pod {pod}   # requests.memory = limits.memory of what it needs: who uses more "
            "than its request is evicted first; or a node with more room"
        )
    elif (match := _EVICTED_WORKERS.search(text)) is not None:
        job = _JOB_NAME.search(text)
        name = job["job"] if job is not None else "JOB"
        says = f"Kubernetes evicted {match['count']} of the {match['all']} worker pods of {name}"
        rule = "EXIT001"
        fix = (
            f"kubectl get pods -l training.kubeflow.org/job-name={name}   # of the one that is "
            f"Evicted: kubectl "
            "describe pod POD tells for which resource: ask for as much as it needs, and start the job anew"
        )
    else:
        return ()
    number = text.count("\n", 0, match.start())
    line = " ".join(match[0].split())[:300]
    return (
        Heard(
            rule=rule,
            says=says,
            speakers=(Speaker(-1, line, exhibit.place_of_line(number)),),
            fix=fix,
            certainty=Certainty.CERTAIN,
            explains=("LOG012",),
        ),
    )


def _failed_job(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return that an operator's job failed because of its pods, if it did not go on."""
    text = exhibit.text
    matches = list(_JOB_FAILED.finditer(text)) if " replica(s) failed" in text else []
    if not matches or _JOB_WENT_ON.search(text, matches[-1].end()):
        return ()
    match = matches[-1]
    job, replica = match["job"], match["replica"].lower()
    number = text.count("\n", 0, match.start())
    return (
        Heard(
            rule="EXIT003",
            says=f"the {match['kind']} {job} failed because {match['count']} pod(s) of its {replica}s "
            "failed; their own logs say why",
            speakers=(Speaker(-1, match[0][:300], exhibit.place_of_line(number)),),
            fix="kubectl get pods -l "
            f"training.kubeflow.org/job-name={job},training.kubeflow.org/replica-type={replica}   # of the "
            "one in Error, OOMKilled or Evicted: kubectl logs POD --previous; kubectl describe pod POD",
            proves_not="which pod it was, nor why",
            explains=("LOG012",),
        ),
    )


def _exited_pod(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return the first pod that the operator saw fail, if its job did not go on."""
    text = exhibit.text
    has_words = " exited with code " in text or " Failed for pod" in text
    matches = list(_POD_EXITED.finditer(text)) if has_words else []
    if not matches or _JOB_WENT_ON.search(text, matches[-1].end()):
        return ()
    match = matches[0]
    pod = match["pod"] or match["pod2"]
    ended_by = int(match["code"] or 0) - _SIGNAL_OFFSET
    was_killed = ended_by in {int(s) for s in signal.Signals}
    ended = f"was ended by {signal.Signals(ended_by).name}" if was_killed else "failed"
    shown_code = f" (exit code {match['code']})" if match["code"] else ""
    number = text.count("\n", 0, match.start())
    return (
        Heard(
            rule="EXIT001" if was_killed else "EXIT003",
            says=f"the pod {pod} {ended}{shown_code}",
            speakers=(Speaker(-1, match[0][:300], exhibit.place_of_line(number)),),
            fix=f"kubectl logs {pod} --previous   # the log of the run that ended; kubectl describe "
            f"pod {pod}",
            certainty=Certainty.CERTAIN,
            explains=("LOG012",),
        ),
    )


READER = LogReader(read=read_log)
