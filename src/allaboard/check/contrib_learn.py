"""TF_CONFIG as tf.contrib.learn of TensorFlow 1 reads it, for scripts of that API that are checked with it.

``RunConfig`` (tensorflow/contrib/learn/python/learn/estimators/run_config.py) takes a missing ``environment``
for ``local``, and calls its chief ``master``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from allaboard.facts import ConfigFacts, Material, Origin, Problem, ScriptFacts
from allaboard.late_pattern import compile_late

CONTRIB_LEARN = "tf.contrib.learn"
_USE = compile_late(r"\bcontrib\.learn\b.*|\bcontrib import learn\b.*")


def read_as_contrib_learn(
    configs: Iterable[ConfigFacts],
    scripts: Iterable[ScriptFacts],
    materials: Mapping[str, Material],
    walked: Collection[str],
) -> list[ConfigFacts]:
    """Return the configurations, those marked that a script reads by tf.contrib.learn.

    In a folder that was walked, scripts speak of the files beside them only.
    """
    uses = {s.file: use[0] for s in scripts if (use := _USE.search(s.source))}
    if not uses:
        return list(configs)
    marked = []
    for config in configs:
        reader = next((f for f in uses if _is_read_by(config.subject, f, walked)), "")
        if reader and config.part_of_source("tf_config") is not None:
            config = msgspec.structs.replace(config, api=CONTRIB_LEARN)
            material = materials.get(config.subject)
            if material is not None and '"environment"' not in _tf_config_text(material):
                problem = _problem(config, f"{uses[reader].strip()[:60]} [{reader}]")
                config = msgspec.structs.replace(config, problems=(*config.problems, problem))
        marked.append(config)
    return marked


def _is_read_by(subject: str, script: str, walked: Collection[str]) -> bool:
    if subject in walked or script in walked:
        return subject.rpartition("/")[0] == script.rpartition("/")[0]
    return True


def _tf_config_text(material: Material) -> str:
    value = material.variables.get("TF_CONFIG")
    return value.text if value is not None else material.text


def _problem(config: ConfigFacts, observed: str) -> Problem:
    listed = next((tasks[0] for tasks in config.spec.cluster.values() if tasks), None)
    return Problem(
        kind="contrib_learn",
        message='TF_CONFIG has no "environment": tf.contrib.learn then trains alone',
        observed=observed,
        correction='"environment": "cloud"',
        origin=listed.origin if listed is not None else Origin(file=config.subject),
    )
