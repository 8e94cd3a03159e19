"""A literal cluster spec, checked in the process and handed to TensorFlow."""

from __future__ import annotations

import pytest

from allaboard.check.tensorflow_resolver import (
    ConfigurationError,
    check_cluster,
    tensorflow_resolver,
)

TWO = {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}


def test_a_good_literal_is_a_spec() -> None:
    spec = check_cluster(TWO, "worker", 1, variables={})
    assert [v.text for _, _, v in spec.tasks()] == TWO["worker"]
    assert spec.index is not None and spec.index.integer == 1


def test_a_bad_one_says_all_that_is_wrong() -> None:
    with pytest.raises(ConfigurationError, match="CFG004: worker 2 is not in the cluster") as error:
        check_cluster({"worker": ["a:2222", "b"]}, "worker", 2, variables={})
    assert {f.rule for f in error.value.findings} == {"CFG004", "CFG006"}


def test_the_environment_is_read_without_a_literal() -> None:
    with pytest.raises(ConfigurationError, match="CFG002"):
        check_cluster(variables={"TF_CONFIG": "{'cluster': {}}"})


def test_tensorflow_takes_it() -> None:
    pytest.importorskip("tensorflow", exc_type=ImportError)
    resolver = tensorflow_resolver(TWO, "worker", 1)
    assert resolver.cluster_spec().as_dict() == TWO
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
