"""Healthy starts, of which nothing may be reported."""

from __future__ import annotations

from multihost_drills.contract import HostDrill
from testbed import ipv6

DRILLS = {
    "healthy-evaluator": HostDrill(
        title=(
            "Nothing is wrong: a ParameterServerStrategy with an evaluator on its own host, which "
            "looks for checkpoints forever"
        ),
        # When the training is done it gets its minute, and is ended with the servers: 0 on every host.
        framework="tensorflow",
        expects="",
        roles=("chief", "worker", "ps", "evaluator"),
        scripts={0: "tf2_ps.py", 1: "tf2_ps.py", 2: "tf2_ps.py", 3: "tf_evaluator.py"},
        arguments=("--rounds", "20"),
        options=(),
        exit_codes=(0,),
        says=r"chief 0 ended with exit code 0; ending what serves: .*evaluator 0",
        long="a minute for the evaluator's last checkpoint",
    ),
    "healthy-interface": HostDrill(
        title=(
            "Nothing is wrong: the script chooses gloo's interface, also on a host whose own name "
            "resolves to 127.0.1.1"
        ),
        framework="torch",
        expects="",
        hosts=3,
        arrange=lambda bed: bed.name("h2", "h2", "127.0.1.1"),
        environment=lambda host, env: env | {"INTERFACE": "eth0"},
        scripts=dict.fromkeys(range(3), "torch_interface.py"),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "healthy-jax": HostDrill(
        title="Nothing is wrong: four hosts start, train and end without a finding",
        framework="jax",
        expects="",
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "healthy-long-transfer": HostDrill(
        title=(
            "Nothing is wrong: a large tensor takes a while over a slow link, and only the link is "
            "reported"
        ),
        framework="torch",
        expects="",
        hosts=2,
        arrange=lambda bed: bed.narrow("h1", 40),
        scripts={0: "torch_large.py", 1: "torch_large.py"},
        options=("--on-hang", "stop", "--hang-after", "6"),
        exit_codes=(0,),
        allowed=("NET008",),
    ),
    "healthy-ps": HostDrill(
        title=(
            "Nothing is wrong: two workers and two parameter servers of TensorFlow 1, each on its "
            "own host, start, train and end without a finding"
        ),
        framework="tensorflow",
        expects="",
        roles=("worker", "worker", "ps", "ps"),
        arguments=("--steps", "200"),
        options=(),
        exit_codes=(0,),
    ),
    "healthy-sixth-off": HostDrill(
        title=(
            "Nothing is wrong: IPv6 is off on the first host, whose name also resolves to an IPv6 "
            "address"
        ),
        # TensorFlow trains.
        framework="tensorflow",
        expects="",
        hosts=3,
        arrange=lambda bed: ipv6.both(bed, without=("h0",)),
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
    ),
    "healthy-tensorflow": HostDrill(
        title="Nothing is wrong: four hosts start, train and end without a finding",
        framework="tensorflow",
        expects="",
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="elsewhere-tensorflow trains it on three hosts",
    ),
    "healthy-tf2-ps": HostDrill(
        title=(
            "Nothing is wrong: a ParameterServerStrategy over four hosts, whose script has no "
            "server loop, starts, trains and ends without a finding"
        ),
        framework="tensorflow",
        expects="",
        roles=("chief", "worker", "worker", "ps"),
        scripts=dict.fromkeys(range(4), "tf2_ps.py"),
        arguments=("--rounds", "20"),
        options=(),
        exit_codes=(0,),
        long="healthy-ps shows the same under TensorFlow 1",
    ),
    "healthy-torch": HostDrill(
        title="Nothing is wrong: four hosts start, train and end without a finding",
        framework="torch",
        expects="",
        arguments=("--steps", "20"),
        options=(),
        exit_codes=(0,),
        long="etcd-healthy trains PyTorch on four hosts",
    ),
}
