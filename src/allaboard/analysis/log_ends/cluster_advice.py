"""What to type about the errors of orchestrators and serving engines: Kubernetes, Ray, DeepSpeed."""

from __future__ import annotations

_KIND = r"(?P<kind>[A-Za-z][\w]{1,60})"

CLUSTER_ADVICE: tuple[tuple[str, str], ...] = (
    # Kubernetes: the API's own words, which all controllers pass on.
    (
        rf'no matches for kind \\?"{_KIND}\\?" in version \\?"(?P<version>[\w./-]{{1,80}})\\?"',
        "kubectl api-resources | grep -i {kind}; kubectl get crd | grep -i {kind}   # its definition is "
        "not installed in version {version}: install the operator that brings it, then restart this "
        "controller",
    ),
    (
        r"the object has been modified; please apply",
        "kubectl get events --sort-by=.lastTimestamp | tail -20   # this alone is harmless, the "
        "controller tries again: look for another error in its log, and at the pods of the job",
    ),
    (
        r'is forbidden: User "(?P<user>[\w.:@/-]{1,200})" cannot (?P<verb>\w{1,20}) resource'
        r' "(?P<what>[\w./-]{1,80})"',
        "kubectl auth can-i {verb} {what} --as={user}   # its role lacks that: kubectl get "
        "clusterrole,role -o wide; install the operator's roles of the same version",
    ),
    (
        r"exceeded quota: (?P<name>[\w.-]{1,250})",
        "kubectl describe quota {name}   # what is used and allowed: ask for less, or end what holds it",
    ),
    (
        r'admission webhook \\?"(?P<name>[\w.-]{1,250})\\?" denied',
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations | grep {name}   # its "
        "words after 'denied the request' say what to change in the manifest",
    ),
    (
        r'failed calling webhook \\?"(?P<name>[\w.-]{1,250})\\?"',
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide | grep "
        "{name}; kubectl get endpoints -A | grep -i webhook   # the pod behind it does not run, or its "
        "certificate is not trusted",
    ),
    (
        r"Invalid value: |is invalid: (?:spec|status|metadata)|unknown field \\?\"|strict decoding error",
        "kubectl explain KIND.spec --recursive; kubectl get crd | grep KIND   # the manifest, or the "
        "operator, is of another version than the installed definition: kubectl apply --server-side -f "
        "the operator's crds",
    ),
    (
        r"tasks in gang unschedulable|unschedulable\b|FailedScheduling",
        "kubectl describe podgroup,pod -n NAMESPACE | grep -A5 Events; kubectl describe nodes | grep -A8 "
        "Allocated   # all pods of the job must fit at the same time: fewer or smaller ones, a queue "
        "with room (kubectl get queue), or wait for what holds the GPUs",
    ),
    (
        r"leader election lost|failed to renew lease|failed to acquire lease",
        "kubectl get --raw /readyz?verbose; kubectl get events -n kube-system | tail   # the API server "
        "was slow or away; the operator starts anew by itself: did the job's pods go on?",
    ),
    (
        r"(?:failed to (?:get|list|watch)|Failed to watch|could not find the requested resource)",
        "kubectl auth can-i list pods --as=system:serviceaccount:NAMESPACE:NAME; kubectl api-resources | "
        "grep KIND   # the controller may not read it, or its definition is not installed",
    ),
    (
        r"\b(?P<kind>[A-Za-z][\w.-]{2,80}) \\?\"(?P<name>[a-z0-9][\w.-]{1,252})\\?\" not found",
        "kubectl get {kind} -A | grep {name}; kubectl get events -A | grep {name}   # deleted, never "
        "made, or in another namespace?",
    ),
    (
        r"is waiting to start: (?:PodInitializing|ContainerCreating)"
        r"|Error from server \(BadRequest\): container",
        "kubectl describe pod POD; kubectl logs POD --all-containers   # which of its init containers, "
        "images or volumes does it wait for?",
    ),
    # Ray.
    (
        r"raylet died|Ray processes died|(?:raylet|gcs_server|GCS)\b[^\n]{0,40}(?:died|exit code|terminated"
        r"|failed to start)",
        "tail -50 /tmp/ray/session_latest/logs/raylet.{{out,err}} "
        "/tmp/ray/session_latest/logs/gcs_server.*   # on that host: its last lines say why; often "
        "memory (dmesg -T | grep -i oom), ulimit -n, no room in /tmp or /dev/shm, or a port of an "
        "earlier start: ray stop",
    ),
    (
        r"mistakenly (?:been )?marked as dead|missed too many heartbeats|failed to check the health",
        "uptime; free -g; dmesg -T | grep -iE 'oom|killed'   # on that host: was it overloaded, or the "
        "network slow? RAY_health_check_timeout_ms=60000 and RAY_health_check_failure_threshold on the "
        "head; clocks: timedatectl",
    ),
    (
        r"number of required GPUs exceeds|placement group[^\n]{0,60}(?:timed? ?out|cannot|infeasible"
        r"|not enough)"
        r"|available node (?:type|resources)",
        "ray status   # the GPUs that the cluster has against tensor_parallel_size x "
        "pipeline_parallel_size; a node that is missing: ray start --address=HEAD:6379 --num-gpus=N "
        "there; ray list nodes",
    ),
    # DeepSpeed's launcher.
    (
        r"Hostfile (?:is empty|contains|is not)|bad entry: ",
        "cat -A HOSTFILE   # one line a host: NAME slots=N, without a comma, a tab or a second entry of "
        "the name",
    ),
    (
        r"no GPU resources available|Unable to proceed, no",
        "nvidia-smi -L; python -c 'import torch; print(torch.cuda.device_count())'; echo "
        "$CUDA_VISIBLE_DEVICES   # where deepspeed is called, and on each host of the hostfile; "
        "--include names GPUs that exist",
    ),
    (
        r"suitable master address|specify one via --master_addr",
        "hostname -I   # no output: deepspeed --master_addr=ADDRESS of the first host (install hostname, "
        "or give the pod an address)",
    ),
    (
        r"--node_rank is not set|Cannot specify num_nodes|cannot be set with --include"
        r"|both include and exclude|Invalid filter",
        "deepspeed --help | grep -A3 -E 'include|num_nodes|node_rank|no_ssh'   # either "
        "--include/--exclude or --num_nodes/--num_gpus; with --no_ssh on each host its own --node_rank, "
        "and one --master_addr",
    ),
)
"""Words of their errors, and what to type; more special rows come first."""
