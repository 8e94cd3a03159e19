"""Mistakes in the TF_CONFIG that a script writes itself, from values that only a run knows: each rule reports
one of them. A TF_CONFIG that is literal throughout is judged as one in a file is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.configuration.spec.job_names import plain_job_name
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.written_tf_config import (
    WrittenTfConfig,
    dict_entries,
    written_tf_configs,
)


def _configs(facts: ScriptFacts) -> Iterator[tuple[Script, WrittenTfConfig]]:
    if "TF_CONFIG" not in facts.source or "dumps" not in facts.source:
        return
    script = read_script(facts)
    for config in written_tf_configs(script):
        yield script, config


def _job_names(facts: ScriptFacts) -> Iterator[Claim]:
    if "contrib.learn" in facts.source:
        return  # its jobs have other names
    for script, config in _configs(facts):
        cluster = config.entries.get("cluster")
        jobs = dict_entries(script, cluster[1]) if cluster is not None else None
        if config.is_literal or jobs is None:
            continue
        wrong = {job: plain_job_name(job) for job in jobs if plain_job_name(job)}
        if not wrong or any(meant in jobs for meant in wrong.values()):
            continue
        corrected = ", ".join(
            f'"{wrong.get(job, job)}": {ast.unparse(value)[:30]}'
            for job, (_, value) in jobs.items()
        )
        job, meant = next(iter(wrong.items()))
        others = f" (and {', '.join(map(repr, list(wrong)[1:]))})" if len(wrong) > 1 else ""
        yield Claim(
            summary=f"the TF_CONFIG that the script writes has a job {job!r}{others}; TensorFlow's name for "
            f"it is {meant!r}",
            evidence=tuple(script.evidence_for(jobs[name][0]) for name in list(wrong)[:2]),
            fix=f'"cluster": {{{corrected}}}',
            severity=Severity.WARNING if job == "master" else Severity.ERROR,
            certainty=Certainty.LIKELY,
            where=script.place_of(jobs[job][0]),
        )


def _no_task(facts: ScriptFacts) -> Iterator[Claim]:
    for script, config in _configs(facts):
        if "cluster" not in config.entries or "task" in config.entries or config.is_literal:
            continue
        yield Claim(
            summary="the TF_CONFIG that the script writes has a cluster and no task: no process knows which "
            "of its members it is",
            evidence=(script.evidence_for(config.statement),),
            fix='"task": {"type": "worker", "index": int(os.environ["'
            + _index_variable(script)
            + '"])}',
            certainty=Certainty.LIKELY,
            where=script.place_of(config.statement),
        )


def _index_variable(script: Script) -> str:
    text = "\n".join(script.lines)
    return "SLURM_PROCID" if "Slurm" in text or "SLURM" in text else "WORKER_INDEX"


def _contrib_learn(facts: ScriptFacts) -> Iterator[Claim]:
    if "contrib.learn" not in facts.source or "RunConfig" not in facts.source:
        return
    for script, config in _configs(facts):
        if "cluster" not in config.entries or "environment" in config.entries:
            continue
        yield Claim(
            summary='the TF_CONFIG that the script writes has no "environment": tf.contrib.learn then '
            "trains alone",
            evidence=(script.evidence_for(config.statement),),
            fix='"environment": "cloud"',
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(config.statement),
        )


_IMPORT = "import json, os\nimport tensorflow as tf\n"
_WRITE = """os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": hosts, "ps": servers},
    "task": {"type": FLAGS.job, "index": FLAGS.index},
})
"""
_FROM_SLURM = """os.environ["TF_CONFIG"] = json.dumps({"cluster": resolver.cluster_spec().as_dict()})
strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""
_LEARN = "config = tf.contrib.learn.RunConfig()\n"

RULES = {
    "code024_written_job_names": script_rule(
        page="""A script writes a TF_CONFIG whose jobs have names that TensorFlow does not know.

## Why it matters
The names of flags, as in `ps_hosts`, are not those of jobs. TensorFlow finds no task `worker 0` in such a
cluster, and raises an error, or takes the job for one without workers.

## What to do
Rename the keys: `chief`, `worker`, `ps` and `evaluator`. TF1 programs that make their own `tf.train.Server`
may use any names, but do not need TF_CONFIG for it.
""",
        check=_job_names,
        fires_on={
            "jobs called `worker_hosts` and `ps_hosts`, as flags are": (
                _IMPORT
                + _WRITE.replace('"worker":', '"worker_hosts":').replace('"ps"', '"ps_hosts"'),
                "the TF_CONFIG that the script writes has a job 'worker_hosts' (and 'ps_hosts'); "
                "TensorFlow's name for it is 'worker'",
            )
        },
        silent_on={
            "jobs called `worker` and `ps`": _IMPORT + _WRITE,
            "a job called `storage`, which is no misspelling": _IMPORT
            + _WRITE.replace('"ps"', '"storage"'),
            "a job `workers`, and `worker` is added later": _IMPORT
            + 'c = {"cluster": {"workers": w}}\nc["cluster"]["worker"] = w\n'
            'os.environ["TF_CONFIG"] = json.dumps(c)\n',
        },
    ),
    "code025_written_without_task": script_rule(
        page="""A script writes a TF_CONFIG without a task.

## Why it matters
TF_CONFIG has two parts: the cluster, which is the same everywhere, and the task, which says which member
this process is. Without it, MultiWorkerMirroredStrategy raises ValueError, or older versions take every
process for the same worker.

## What to do
Add `"task": {"type": "worker", "index": …}`, with the index from the launcher. Or leave TF_CONFIG away and
pass the resolver to the strategy.
""",
        check=_no_task,
        fires_on={
            "the cluster of a resolver, and no task": (
                _IMPORT + _FROM_SLURM,
                "the TF_CONFIG that the script writes has a cluster and no task: no process knows which of "
                "its members it is",
            )
        },
        silent_on={
            "a cluster and a task": _IMPORT + _WRITE,
            "a cluster, and the task is added later": _IMPORT
            + 'c = {"cluster": spec()}\nc["task"] = task()\nos.environ["TF_CONFIG"] = json.dumps(c)\n',
        },
    ),
    "code026_written_without_environment": script_rule(
        page="""A script writes a TF_CONFIG for tf.contrib.learn without "environment": "cloud".

## Why it matters
The RunConfig of tf.contrib.learn (TensorFlow 1) reads TF_CONFIG's `environment` and takes its absence for
`local`: the Experiment then runs `train_and_evaluate` in this process alone, and each member trains its own
model. Its chief is called `master`.

## What to do
Add `"environment": "cloud"` to TF_CONFIG, on every member.
""",
        check=_contrib_learn,
        fires_on={
            "a TF_CONFIG without `environment`, for tf.contrib.learn": (
                _IMPORT + _WRITE.replace('"ps"', '"master"') + _LEARN,
                'the TF_CONFIG that the script writes has no "environment": tf.contrib.learn then trains '
                "alone",
            )
        },
        silent_on={
            "a TF_CONFIG with `environment` set to `cloud`, for tf.contrib.learn": _IMPORT
            + _WRITE.replace('    "cluster"', '    "environment": "cloud", "cluster"')
            + _LEARN,
            "a TF_CONFIG without `environment`, for tf.estimator": _IMPORT
            + _WRITE
            + "config = tf.estimator.RunConfig()\n",
        },
    ),
}
