"""Events of Kubernetes that keep a pod of a job from its start, or end it."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.facts import Certainty

POD = r"(?:[^\n]{0,80}?\bpod/(?P<pod>[\w.-]{1,253}))?"
"""Matches what may stand between an event's reason and its message, with the pod if it is there."""
_SOURCE = "its wording from the source of Kubernetes 1.20 to 1.34 (kubelet, controllers, scheduler)"


def _event(
    key: str,
    reasons: str,
    beginnings: str,
    rule: str,
    says: str,
    fix: str,
    sample: str,
    *,
    explains: tuple[str, ...] = (),
    source: str = _SOURCE,
) -> KnownMessage:
    """Return the event of one of these ``reasons`` whose message begins with one of these ``beginnings``."""
    return KnownMessage(
        key=key,
        pattern=rf"\b(?:{reasons})\b{POD}[^\n]{{0,80}}?(?P<why>(?:{beginnings})[^\n]{{0,160}})",
        rule=rule,
        says=says,
        fix=fix,
        certainty=Certainty.CERTAIN,
        explains=("LOG012", *explains),
        sample=sample,
        source=source,
    )


_VOLUME_FIX = (
    "kubectl describe pod {pod} | grep -A4 Volumes; kubectl get pvc,pv   # is the claim bound? Multi-Attach: "
    "a ReadWriteOnce volume serves one node, several pods need ReadWriteMany; exit status 32: the NFS "
    "server's address, and its client on the node"
)
_NODE_FIX = (
    "kubectl get pod {pod} -o wide; kubectl describe node NODE   # its conditions and events; then start the "
    "job again without it: kubectl cordon NODE"
)
_LOGS_FIX = (
    "kubectl logs {pod} --previous; kubectl describe pod {pod}   # Last State: its exit code, or "
    "OOMKilled"
)
EVENT_MESSAGES = (
    _event(
        "olume",
        "FailedMount|FailedAttachVolume",
        "MountVolume|Unable to (?:attach|mount)|Multi-Attach|AttachVolume|MapVolume",
        "JOIN001",
        "Kubernetes could not mount a volume for the pod {pod}: {why}",
        _VOLUME_FIX,
        '12s  Warning  FailedMount  pod/train-1  MountVolume.SetUp failed for volume "nfs" : mount failed: '
        "exit status 32",
    ),
    _event(
        "et",
        "FailedCreatePodSandBox|NetworkNotReady",
        "Failed to create pod sandbox|network is not ready",
        "JOIN001",
        "the node could not set up the network for the pod {pod}: {why}",
        "kubectl get pod {pod} -o wide; kubectl -n kube-system get pods -o wide | grep NODE   # does the "
        "network plugin run there? Else kubectl cordon NODE and start the pod anew",
        "3s  Warning  FailedCreatePodSandBox  pod/train-1  Failed to create pod sandbox: rpc error: code = "
        "Unknown desc = failed to setup network for sandbox",
    ),
    _event(
        "mage",
        "Failed|BackOff|InspectFailed",
        "Failed to pull image|Error: (?:ErrImagePull|ImagePullBackOff|InvalidImageName)|Back-off pulling "
        "image|Failed to apply default image tag",
        "JOIN001",
        "Kubernetes could not pull the image for the pod {pod}: {why}",
        "kubectl describe pod {pod} | grep -i image   # its name and tag, letter by letter; a private "
        "registry: imagePullSecrets; too many requests: a mirror",
        '4s  Warning  Failed  pod/train-1  Failed to pull image "train:1": rpc error: code = NotFound',
    ),
    _event(
        " not found",
        "Failed",
        r'Error: (?:configmap|secret|couldn\'t find key \S{1,80} in \w+) "?[^\n"]{0,253}"? not found',
        "JOIN001",
        "Kubernetes found no ConfigMap or Secret of that name for the pod {pod}: {why}",
        "kubectl describe pod {pod}; kubectl get configmap,secret   # in the namespace of the pod",
        '4s  Warning  Failed  pod/train-1  Error: configmap "train-config" not found',
    ),
    _event(
        "Error: failed to ",
        "Failed",
        r"Error: failed to (?:create (?:containerd|shim) task|start container|create container)",
        "JOIN001",
        "Kubernetes could not start a container of the pod {pod}: {why}",
        "kubectl get pod {pod} -o wide; on its node: nvidia-smi; journalctl -u containerd | tail   # driver/"
        "library mismatch: reboot the node; no such file: the image's command",
        "4s  Warning  Failed  pod/train-1  Error: failed to create containerd task: failed to create shim "
        "task: OCI runtime create failed",
    ),
    _event(
        "UnexpectedAdmissionError",
        "UnexpectedAdmissionError",
        "Allocate failed|allocate failed",
        "JOIN001",
        "the node had fewer devices than the scheduler believed, and refused the pod {pod}: {why}",
        "kubectl get pod {pod} -o wide; kubectl describe node NODE | grep -A9 Allocatable   # restart the "
        "device plugin there; a GPU may be lost: nvidia-smi -L; then delete the pod",
        "4s  Warning  UnexpectedAdmissionError  pod/train-1  Allocate failed due to requested number of "
        "devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7",
    ),
    _event(
        "Error creating: ",
        "FailedCreate",
        "Error creating: ",
        "JOIN001",
        "Kubernetes could not create the pods of the job: {why}",
        "kubectl describe resourcequota; kubectl auth can-i create pods   # ask for less, end other jobs, or "
        "have the quota raised; admission webhooks and policies refuse with their own words",
        '4s  Warning  FailedCreate  job/train  Error creating: pods "train-1" is forbidden: exceeded quota',
    ),
    *(
        _event(
            beginning,
            "NodeNotReady|NodeShutdown|TaintManagerEviction|DeletingNode",
            beginning,
            "EXIT010",
            "Kubernetes lost or emptied the node of the pod {pod}: {why}",
            _NODE_FIX,
            f"4s  Warning  {reason}  pod/train-1  {beginning}",
            explains=("EXIT001",),
        )
        for reason, beginning in (
            ("NodeNotReady", "Node is not ready"),
            ("NodeShutdown", "Pod was terminated in response to"),
            ("TaintManagerEviction", "Marking for deletion"),
        )
    ),
    _event(
        "Preempted",
        "Preempted",
        "Preempted by|Preempted to accommodate",
        "EXIT001",
        "Kubernetes ended, for one of a higher priority, the pod {pod}: {why}",
        "save checkpoints and start it again; kubectl get priorityclass   # a class that others do not "
        "preempt",
        "4s  Warning  Preempted  pod/train-1  Preempted by pod 77 on node gpu-3",
    ),
    _event(
        "Back-off restarting failed container",
        "BackOff",
        "Back-off restarting failed container (?!init-)",
        "EXIT003",
        "a container fails each time that it is started in the pod {pod}: {why}",
        _LOGS_FIX,
        "4s  Warning  BackOff  pod/train-1  Back-off restarting failed container pytorch in pod train-1",
    ),
    _event(
        "reached the specified backoff limit",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
        "EXIT003",
        "Kubernetes gave up on the job ({why}): its pods failed as often as it allows; their own logs "
        "say why",
        "kubectl get pods --sort-by=.status.startTime   # of each in Error: kubectl logs POD --previous; "
        "kubectl describe pod POD",
        "4s  Warning  BackoffLimitExceeded  job/train  Job has reached the specified backoff limit",
    ),
    _event(
        "failed liveness probe",
        "Killing",
        r"Container \S{1,80} failed liveness probe, will be restarted",
        "EXIT001",
        "the kubelet ended a container that did not answer its probe, in the pod {pod}: {why}",
        "kubectl describe pod {pod} | grep -i liveness   # a rank that loads weights or saves a checkpoint "
        "answers late: a longer timeout and failureThreshold, or none",
        "4s  Normal  Killing  pod/train-1  Container pytorch failed liveness probe, will be restarted",
    ),
    _event(
        "System OOM encountered",
        "SystemOOM",
        "System OOM encountered",
        "RES001",
        "the memory of a node ran out, and the kernel ended a process there: {why}",
        "kubectl describe node NODE; on it: dmesg -T | grep -i oom   # requests.memory = limits.memory for "
        "each pod there",
        "4s  Warning  SystemOOM  node/gpu-3  System OOM encountered, victim process: python, pid: 4711",
    ),
    *(
        _event(
            key,
            "Pending|QuotaReserved|Unschedulable|InsufficientResources|FailedScheduling",
            beginning,
            "JOIN001",
            "the queue holds back all pods of the job: {why}",
            "kubectl get workloads,clusterqueues,podgroups -A   # Kueue or Volcano: which jobs hold the "
            "quota? Ask for less, or wait",
            sample,
            source="its wording from the sources of Kueue 0.5 to 0.13 and Volcano 1.6 to 1.12",
        )
        for key, beginning, sample in (
            (
                "assign flavors",
                "couldn't assign flavors to pod set",
                "4s  Warning  Pending  workload/train  couldn't assign flavors to pod set worker: "
                "insufficient unused quota for nvidia.com/gpu",
            ),
            (
                "pod group is not ready",
                r"[^\n]{0,80}?pod group is not ready",
                "4s  Warning  FailedScheduling  pod/train-1  3/4 tasks in gang unschedulable: pod group "
                "is not ready, 3 Pending, 4 minAvailable",
            ),
        )
    ),
)
"""Events that say why a pod does not start, or why it ended; those of JOIN001 count until it has started."""
