"""Reader of the object that TF_CONFIG holds, and of Vertex AI's CLUSTER_SPEC, which has the same form.

The form is that of tf.distribute.cluster_resolver.TFConfigClusterResolver: ``cluster`` maps a job
to the list of its tasks' addresses, ``task`` holds ``type`` and ``index`` of this process.
"""

from __future__ import annotations

from allaboard.configuration.spec.job_names import is_job_name
from allaboard.configuration.spec.unstructured_values import EXAMPLE, not_json
from allaboard.facts import FormatError, Node, Origin, PartialSpec, Problem, Value


def read_cluster(
    text: str,
    origin: Origin,
    *,
    source: str,
    tree: Node | None = None,
    layer: str = "framework",
    key: str = "",
) -> PartialSpec:
    """Return the spec that ``text`` states; what is not of the form becomes its problems.

    ``origin`` is where the text begins; positions inside are added to it. ``tree`` saves parsing
    where that is done already; with ``key`` the text is what stands under that key alone.
    """
    if tree is None:
        from allaboard.formats.json_nodes import read_json

        try:
            tree = read_json(text)
        except FormatError as error:
            return PartialSpec(
                source=source, layer=layer, problems=(not_json(error, text, origin),)
            )
    if key:
        tree = Node("map", tree.line, tree.column, items={key: tree})
    return _Reader(origin, source, layer).read(tree)


class _Reader:
    """One pass over the object, which collects the problems."""

    def __init__(self, origin: Origin, source: str, layer: str) -> None:
        self.origin = origin
        self.source = source
        self.layer = layer
        self.problems: list[Problem] = []

    def read(self, tree: Node) -> PartialSpec:
        """Return the spec of the whole object."""
        if tree.kind != "map":
            self._problem(tree, f"is a {tree.kind}, not an object", tree.text, EXAMPLE)
            return self._spec({}, None, None)
        self._twice(tree, "")
        cluster = tree.node_at("cluster")
        jobs: dict[str, tuple[Value, ...]] = {}
        if cluster is None:
            self._no_cluster(tree)
        elif cluster.kind != "map":
            message = f"cluster is a {cluster.kind}, not an object of jobs"
            right = '"cluster": {"worker": ["host0:2222", "host1:2222"]}'
            self._problem(cluster, message, cluster.text, right, "cluster")
        else:
            self._twice(cluster, "cluster.")
            misplaced_task = self._task_inside(tree, cluster)
            listed = {j: n for j, n in cluster.items.items() if n is not misplaced_task}
            jobs = {job: self._addresses(job, node) for job, node in listed.items()}
            self._nobody(listed)
            if misplaced_task is not None:
                return self._spec(
                    jobs, self._type(misplaced_task, jobs), self._index(misplaced_task)
                )
        task = tree.node_at("task")
        if task is None:
            if sum(map(len, jobs.values())) > 1:
                first_job = next(iter(jobs))
                right = f'"task": {{"type": "{first_job}", "index": 0}}'
                self._problem(tree, "has no task: who of the cluster is this process?", "", right)
            return self._spec(jobs, None, None)
        if task.kind != "map":
            right = '"task": {"type": "worker", "index": 0}'
            self._problem(task, f"task is a {task.kind}, not an object", task.text, right, "task")
            return self._spec(jobs, None, None)
        self._twice(task, "task.")
        return self._spec(jobs, self._type(task, jobs), self._index(task))

    def _task_inside(self, tree: Node, cluster: Node) -> Node | None:
        """Return the task if a misplaced brace put it inside of the cluster, where it is taken for a job."""
        task = cluster.node_at("task")
        if tree.node_at("task") is not None or task is None or task.kind != "map":
            return None
        message = "has its task inside of cluster, where it is taken for a job of that name"
        self._problem(task, message, "", '{"cluster": {…}, "task": {…}}', "cluster.task")
        return task

    def _nobody(self, listed: dict[str, Node]) -> None:
        """Add a problem if no job has any task: then no task can be this process."""
        if all(n.kind == "list" and not n.elements for n in listed.values()):
            for job, node in list(listed.items())[:1]:
                message = f"cluster.{job} lists nobody: there is no task to be"
                right = f'"{job}": ["host0:2222", "host1:2222"]'
                self._problem(node, message, "[]", right, f"cluster.{job}")

    def _no_cluster(self, tree: Node) -> None:
        if not tree.items:
            return
        if "sparseCluster" in tree.items:
            message = "has sparseCluster in place of cluster, and TensorFlow does not read that"
            right = "enableDynamicWorker: false   # in the TFJob, whose operator writes it"
            self._problem(tree.items["sparseCluster"], message, "", right, "sparseCluster")
            return
        lists = [k for k, n in tree.items.items() if n.kind == "list" and k != "task"]
        if lists and ("task" in tree.items or any(is_job_name(k) for k in lists)):
            import json  # the few words that are written; what is read has a reader of its own

            right = json.dumps({"cluster": {k: ["…"] for k in lists}}) + ' with "task" beside it'
            self._problem(tree, f"has its jobs ({', '.join(lists)}) outside of cluster", "", right)
        elif "task" in tree.items:
            right = '"cluster": {"worker": ["host0:2222", "host1:2222"]}'
            message = "has a task and no cluster: TensorFlow would train alone, in silence"
            self._problem(tree, message, "", right)

    def _addresses(self, job: str, node: Node) -> tuple[Value, ...]:
        key = f"cluster.{job}"
        if node.kind == "string":
            message = f"cluster.{job} is one string, not a list"
            each = ", ".join(f'"{a.strip()}"' for a in node.text.split(","))
            self._problem(node, message, node.text, f'"{job}": [{each}]', key)
            return (Value(node.text, self._at(node, key)),)
        if node.kind != "list":
            message = f"cluster.{job} is a {node.kind}, not a list of addresses"
            self._problem(node, message, node.text, f'"{job}": ["host0:2222"]', key)
            return ()
        addresses = []
        for index, element in enumerate(node.elements):
            element_key = f"{key}[{index}]"
            if element.kind != "string":
                message = f"{element_key} is a {element.kind}, not an address"
                self._problem(element, message, element.text, _address_of(element), element_key)
            addresses.append(Value(element.text, self._at(element, element_key)))
        return tuple(addresses)

    def _type(self, task: Node, jobs: dict[str, tuple[Value, ...]]) -> Value | None:
        node = task.node_at("type")
        if node is None:
            first_job = next(iter(jobs), "worker")
            self._problem(task, "task has no type", "", f'"type": "{first_job}"', "task")
            return None
        if node.kind != "string":
            message = f"task.type is a {node.kind}, not a name"
            self._problem(node, message, node.text, '"type": "worker"', "task.type")
        return Value(node.text, self._at(node, "task.type"))

    def _index(self, task: Node) -> Value | None:
        node = task.node_at("index")
        if node is None:
            self._problem(task, "task has no index", "", '"index": 0', "task")
            return None
        value = Value(node.text, self._at(node, "task.index"))
        if node.kind == "string" and value.integer is not None:
            message = f'task.index is the string "{node.text}"'
            right = f'"index": {value.integer}'
            self._problem(node, message, f'"{node.text}"', right, "task.index", "tf_config.index")
        elif value.integer is None:
            message = f"task.index is no whole number: {node.text or node.kind}"
            self._problem(node, message, node.text, '"index": 0', "task.index")
            return None
        return value

    def _twice(self, node: Node, prefix: str) -> None:
        for key, line, column in node.twice:
            first_position = node.keys[key]
            self.problems.append(
                Problem(
                    kind="tf_config.shape",
                    message=f"has {prefix}{key} twice; the first one is ignored without a word",
                    observed=f'"{key}" again',
                    correction=f'one "{key}" with all of its entries',
                    origin=self.origin.within(line or first_position[0], column, key=prefix + key),
                )
            )

    def _at(self, node: Node, key: str) -> Origin:
        return self.origin.within(node.line, node.column, key=key)

    def _problem(
        self,
        node: Node,
        message: str,
        observed: str,
        correction: str,
        key: str = "",
        kind: str = "tf_config.shape",
    ) -> None:
        self.problems.append(
            Problem(
                kind=kind,
                message=message,
                observed=observed or _looks(node),
                correction=correction,
                origin=self._at(node, key),
            )
        )

    def _spec(
        self, jobs: dict[str, tuple[Value, ...]], job: Value | None, index: Value | None
    ) -> PartialSpec:
        return PartialSpec(
            source=self.source,
            layer=self.layer,
            framework="tensorflow",
            cluster={name: tasks for name, tasks in jobs.items() if tasks},
            job=job,
            index=index,
            problems=tuple(self.problems),
        )


def _looks(node: Node) -> str:
    if node.kind == "list":
        return f"a list of {len(node.elements)}"
    return f"a {node.kind} with {', '.join(node.items) or 'nothing'}"


def _address_of(node: Node) -> str:
    """Return what may have been meant by an entry that is no string: ["host", port] is an address in two
    parts."""
    parts = [n.text for n in node.elements]
    return f'"{parts[0]}:{parts[1]}"' if len(parts) == 2 and all(parts) else '"host:2222"'
