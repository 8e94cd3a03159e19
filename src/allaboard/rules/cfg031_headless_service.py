"""Pods look for each other by name, but no headless service gives them names.

## Why it matters
A pod's name `POD.SERVICE` resolves only under a service with `clusterIP: None`. Without one, or with an
ordinary service, the others cannot resolve rank 0's name: they retry until their timeout.

torchrun's c10d serves its store where the endpoint is one of the pod's own addresses; that of an ordinary
service is no pod's.

## What to do
Add the service shown, or set `clusterIP: None` in the existing one. If it is created elsewhere, give its
file to `check` as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.pod_meetings import flag_value
from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, Origin, Severity, Value
from allaboard.facts.address import parse_address
from allaboard.facts.configuration.manifest import ManifestFacts, Role, Service, Workload


def check(facts: ManifestFacts) -> Iterator[Claim]:
    for workload in facts.workloads:
        for named, role in _service_names(workload):
            service = next((s for s in facts.services if s.name == named.text), None)
            if service is None:
                yield _missing(workload, named, role)
            elif not service.headless and _meets_by_pod(role, named.text):
                yield _not_headless(workload, named, service)
            elif service.headless:
                yield from _check_selector(workload, role, service)
    for service in facts.services:
        if not service.headless:
            yield from _check_store_address(facts, service)


_CONTROLLER_LABELS = {
    "Job": ("job-name", "batch.kubernetes.io/job-name"),
    "StatefulSet": (),
    "Pod": (),
}
"""Labels that controllers add to those of the pod template, with the workload's name as value."""
_UNKNOWABLE_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "pod-template-hash")


def _check_selector(workload: Workload, role: Role, service: Service) -> Iterator[Claim]:
    """Report a service that does not select these pods, and so gives them no names."""
    labels = {**role.labels, **dict.fromkeys(_CONTROLLER_LABELS[workload.kind], workload.name)}
    for key, text in service.selector.items():
        is_unknowable = key in _UNKNOWABLE_LABELS or ("kubernetes.io/" in key and key not in labels)
        if is_unknowable or labels.get(key) == text:
            continue
        actual_labels = (
            f"{key}={labels[key]}"
            if key in labels
            else ", ".join(f"{k}={t}" for k, t in labels.items()) or "no labels"
        )
        yield Claim(
            summary=f"the service {service.name!r} selects pods with {key}={text}, but those of "
            f"{workload.kind} {workload.name} have {actual_labels}: their names do not resolve",
            evidence=(
                Value(f"{key}: {text}", service.origin).evidence,
                Value(actual_labels, role.origin).evidence,
            ),
            fix=_suggested_selector(labels, workload),
            where=service.origin.editor_place,
        )
        return


def _check_store_address(facts: ManifestFacts, service: Service) -> Iterator[Claim]:
    """Report a service at whose address the pods of torchrun's c10d meet: no pod has that address.

    torchrun serves the store where the endpoint's host is one of the pod's own names or addresses
    (_matches_machine_hostname of torch/distributed/elastic/rendezvous/utils.py), or where is_host says so.
    """
    meeting = [
        (workload, role, endpoint)
        for workload in facts.workloads
        for role in workload.roles
        if (endpoint := _c10d_endpoint(role)) is not None
        and _is_named(service, workload, parse_address(endpoint.text).host)
    ]
    # Another workload, which is not selected, may serve the store.
    served_by_pod = any(_sets_is_host(role) for _, role, _ in meeting)
    if served_by_pod or not any(_selects(service, r, w) for w, r, _ in meeting):
        return
    workload, _, endpoint = meeting[0]
    further = f" and {len(meeting) - 1} more" if len(meeting) > 1 else ""
    yield Claim(
        summary=f"no torchrun serves the store: {service.name!r} is a service that is not headless, and no "
        f"pod of {workload.kind} {workload.name}{further} has its address",
        evidence=(endpoint.evidence, Value("no clusterIP: None", service.origin).evidence),
        fix=_single_store(service, meeting, endpoint),
        certainty=Certainty.LIKELY,
        where=service.origin.editor_place,
    )


def _single_store(
    service: Service, meeting: list[tuple[Workload, Role, Value]], endpoint: Value
) -> str:
    """Return the change by which one pod alone finds its own address at the endpoint.

    A headless service that selects several pods has the addresses of all of them.
    """
    counts = [r.replicas.integer or 0 for w, r, _ in meeting if _selects_all(service, r, w)]
    if sum(counts) < 2:
        return f"clusterIP: None   # in Service {service.name}; or --rdzv_conf is_host=1 in the pod behind it"
    workload = meeting[0][0]
    port = parse_address(endpoint.text).port or "29400"
    return (
        f"--rdzv_endpoint={workload.name}-0.{service.name}:{port}   # one pod's own name; and clusterIP: "
        f"None in Service {service.name}"
    )


def _selects_all(service: Service, role: Role, workload: Workload) -> bool:
    """Return True if the service's whole selector fits the pods of this role."""
    labels = {
        **role.labels,
        **dict.fromkeys(_CONTROLLER_LABELS.get(workload.kind, ()), workload.name),
    }
    return all(labels.get(k) == text for k, text in service.selector.items())


def _c10d_endpoint(role: Role) -> Value | None:
    """Return the endpoint of a role whose torchrun uses c10d; None for other roles."""
    for command in role.commands or (role.command,):
        backend = flag_value(command, "--rdzv_backend", "--rdzv-backend")
        backend = backend or role.env.get("PET_RDZV_BACKEND")
        if backend is not None and backend.text == "c10d":
            endpoint = flag_value(command, "--rdzv_endpoint", "--rdzv-endpoint")
            return endpoint or role.env.get("PET_RDZV_ENDPOINT")
    return None


def _sets_is_host(role: Role) -> bool:
    words = (w for command in (role.command, *role.commands) for w in command)
    return any("is_host" in v.text for v in (*words, *role.env.values()))


def _is_named(service: Service, workload: Workload, host: str) -> bool:
    """Return True if the name stands for the service: ``NAME``, ``NAME.NAMESPACE.svc`` and its like."""
    name, _, domain = host.partition(".")
    namespace = domain.partition(".")[0] or workload.namespace
    return service.name == name and service.namespace in ("", namespace)


def _selects(service: Service, role: Role, workload: Workload) -> bool:
    """Return True if the service may stand for a pod of this role, or of another pod of its job."""
    if not service.selector:
        return False
    labels = {
        **role.labels,
        **dict.fromkeys(_CONTROLLER_LABELS.get(workload.kind, ()), workload.name),
    }
    # The others of a job have the same labels but for the one that numbers them.
    return any(labels.get(k) == text for k, text in service.selector.items())


def _suggested_selector(labels: dict[str, str], workload: Workload) -> str:
    key, text = next(iter(labels.items()), ("app", workload.name))
    return f"selector: {{{key}: {text}}}"


def _service_names(workload: Workload) -> Iterator[tuple[Value, Role]]:
    """Yield the services that are to give this workload's pods their names, with the pods' role."""
    if workload.kind not in ("StatefulSet", "Job", "Pod"):
        return
    for role in workload.roles:
        domain = workload.service if workload.kind == "StatefulSet" else role.subdomain
        if domain is not None and _is_distributed(role):
            yield domain, role


def _is_distributed(role: Role) -> bool:
    named = {*role.env, *role.computed}
    command_text = " ".join(w.text for w in role.command)
    return bool(
        named & {"MASTER_ADDR", "WORLD_SIZE", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "RANK"}
    ) or any(w in command_text for w in ("torchrun", "torch.distributed", "--rdzv", "MASTER_ADDR"))


def _meets_by_pod(role: Role, service: str) -> bool:
    """Return True if some value names a pod under the service, not the service itself."""
    texts = [v.text for v in role.env.values()] + [w.text for w in role.command]
    return any(f"-0.{service}" in t for t in texts)


def _missing(workload: Workload, named: Value, role: Role) -> Claim:
    label, text = next(iter(role.labels.items()), ("job-name", workload.name))
    return Claim(
        summary=f"the pods of {workload.kind} {workload.name} take their names from the service "
        f"{named.text!r}, which is not in the given files",
        evidence=(named.evidence,),
        fix=f"add a headless Service {named.text} (allaboard check --fix-suggestions prints it)\n"
        "apiVersion: v1\nkind: Service\nmetadata:\n"
        f"  name: {named.text}\nspec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n"
        f"  selector:\n    {label}: {text}",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=named.origin.editor_place,
    )


def _not_headless(workload: Workload, named: Value, service: Service) -> Claim:
    where = service.origin
    return Claim(
        summary=f"the service {service.name!r} is not headless, so the pod names of "
        f"{workload.kind} {workload.name} do not resolve",
        evidence=(named.evidence, Value("no clusterIP: None", where).evidence),
        fix="clusterIP: None",
        where=where.editor_place,
    )


def _facts(services: tuple[Service, ...]) -> ManifestFacts:
    origin = Origin(key="spec.serviceName", file="set.yaml", line=6, column=16)
    role = Role(
        name="",
        replicas=Value("2"),
        env={"MASTER_ADDR": Value("train-0.train")},
        labels={"app": "train"},
    )
    workload = Workload(
        kind="StatefulSet", name="train", roles=(role,), service=Value("train", origin)
    )
    return ManifestFacts(workloads=(workload,), services=services)


def _store_behind(headless: bool, *more: str) -> ManifestFacts:
    """Return a pod whose torchrun meets at the name of a service."""
    texts = (
        "torchrun",
        "--nnodes=2",
        "--rdzv_backend=c10d",
        "--rdzv_endpoint=meet:29400",
        *more,
        "t.py",
    )
    command = tuple(Value(w) for w in texts)
    role = Role(
        name="", replicas=Value("1"), command=command, commands=(command,), labels={"app": "lm"}
    )
    service = Service(name="meet", headless=headless, selector={"app": "lm"})
    pod = Workload(kind="Pod", name="lm-0", roles=(role,))
    return ManifestFacts(workloads=(pod,), services=(service,))


RULE = Rule(
    reads=ManifestFacts,
    check=check,
    fires_on={
        "a StatefulSet names a service that is in none of the files": (
            _facts(()),
            "the pods of StatefulSet train take their names from the service 'train', which is not "
            "in the given files",
        ),
        "the service of a StatefulSet is not headless": (
            _facts((Service(name="train"),)),
            "the service 'train' is not headless, so the pod names of StatefulSet train do not resolve",
        ),
        "torchrun's rendezvous endpoint is a service that is not headless": (
            _store_behind(headless=False),
            "no torchrun serves the store: 'meet' is a service that is not headless, and no pod of Pod "
            "lm-0 has its address",
        ),
        "the headless service selects other pods than those of the StatefulSet": (
            _facts((Service(name="train", headless=True, selector={"app": "serve"}),)),
            "the service 'train' selects pods with app=serve, but those of StatefulSet train have "
            "app=train: their names do not resolve",
        ),
    },
    silent_on={
        "torchrun's rendezvous endpoint is a headless service": _store_behind(headless=True),
        "a pod that serves the store because of `--rdzv_conf=is_host=1`": _store_behind(
            False, "--rdzv_conf=is_host=1"
        ),
        "the service of a StatefulSet is headless": _facts((Service(name="train", headless=True),)),
        "the headless service selects the pods of the StatefulSet": _facts(
            (Service(name="train", headless=True, selector={"app": "train"}),)
        ),
        "the headless service selects by a label that Kubernetes sets itself": _facts(
            (Service(name="train", headless=True, selector={"apps.kubernetes.io/pod-index": "0"}),)
        ),
    },
)
