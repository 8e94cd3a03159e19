"""Faults in jobs with MultiWorkerMirroredStrategy."""

from __future__ import annotations

from allaboard.contracts import Drill
from allaboard.launch.signals import continue_process, kill_process, stop_process

DRILLS = {
    "tf-asleep": Drill(
        title="A TensorFlow worker sleeps in the middle of training",
        script="tf_mwms.py",
        expects="HANG005",
        fault="asleep",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "tf-asleep-before-init": Drill(
        title="A TensorFlow worker sleeps before it creates the strategy",
        script="tf_mwms.py",
        expects="JOIN002",
        fault="asleep-before-init",
        inside=True,
        options=("--timeout", "6", "--timeout-hard", "14"),
        exit_codes=(3,),
    ),
    "tf-asleep-reduce": Drill(
        title=(
            "A TensorFlow worker sleeps between a step and the reduction of its result, in which "
            "the others wait, as under Keras' `fit` when one worker sleeps in a callback"
        ),
        script="tf_mwms.py",
        expects="HANG005",
        fault="asleep-before-reduce",
        inside=True,
        arguments=("--eager",),
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "tf-collectives-differ": Drill(
        title=(
            "A TensorFlow worker calls a collective of another dtype while the others reduce their "
            "gradients"
        ),
        script="tf_mwms.py",
        expects="EXIT009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        inside=True,
        fault="collectives-differ",
    ),
    "tf-dies-before-init": Drill(
        title="A TensorFlow worker raises before it creates the strategy",
        script="tf_mwms.py",
        expects="JOIN003",
        fault="dies-before-init",
        inside=True,
        exit_codes=(3,),
        # TensorFlow may take longer to import than the exception is held back for the roll call.
        allowed=("EXIT002",),
    ),
    "tf-exception": Drill(
        title="A TensorFlow worker raises in the middle of training",
        script="tf_mwms.py",
        expects="EXIT002",
        fault="exception",
        inside=True,
    ),
    "tf-generator-starved": Drill(
        title=(
            "The generator that feeds a TensorFlow worker waits for a thread of the program that "
            "has ended"
        ),
        script="tf_generator.py",
        expects="HANG005",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "75"),
        exit_codes=(4,),
        long="a generator may be slow for a minute",
    ),
    "tf-killed": Drill(
        title="A TensorFlow worker is killed by SIGKILL in the middle of training",
        script="tf_mwms.py",
        expects="EXIT001",
        outside=kill_process,
    ),
    "tf-leaves-early": Drill(
        title="A TensorFlow worker ends with exit code 0 while the others train",
        script="tf_mwms.py",
        expects="EXIT004",
        fault="leaves-early",
        inside=True,
    ),
    "tf-lists-ps": Drill(
        title=(
            "TF_CONFIG of a MultiWorkerMirroredStrategy lists a parameter server that is not "
            "started"
        ),
        script="tf_mwms.py",
        expects="PS009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        inside=True,
        fault="lists-ps",
        ends=False,
    ),
    "tf-nan-loss": Drill(
        title=(
            "The batch of a TensorFlow worker is not finite; the average spreads it to all workers"
        ),
        script="tf_mwms.py",
        expects="NUM005",
        workers=2,
        guilty=1,
        blames=(0, 1),
        inside=True,
        fault="nan-loss",
        ends=False,
    ),
    "tf-no-cluster": Drill(
        title="One worker has a TF_CONFIG without a cluster and would train alone",
        script="tf_mwms.py",
        expects="JOIN006",
        workers=3,
        fault="no-cluster",
        guilty=2,
        inside=True,
        exit_codes=(3,),
    ),
    "tf-order": Drill(
        title="One worker's TF_CONFIG lists the workers in another order",
        script="tf_mwms.py",
        expects="JOIN007",
        fewest=3,
        fault="order",
        inside=True,
        exit_codes=(3,),
    ),
    "tf-stopped": Drill(
        title="A TensorFlow worker is stopped by SIGSTOP in the middle of training",
        script="tf_mwms.py",
        expects="HANG001",
        outside=stop_process,
        heal=continue_process,
        options=("--on-hang", "stop"),
        exit_codes=(4,),
    ),
    "tf-stuck-in-python": Drill(
        title="A TensorFlow worker loops forever in its own code",
        script="tf_mwms.py",
        expects="HANG002",
        fault="stuck-in-python",
        inside=True,
        options=("--on-hang", "stop", "--hang-after", "8"),
        exit_codes=(4,),
    ),
    "tf-two-tasks": Drill(
        title="Two workers have the same task index",
        script="tf_mwms.py",
        expects="JOIN005",
        fault="two-tasks",
        blames=(0,),
        inside=True,
        exit_codes=(3,),
    ),
    "tf-wrong-port": Drill(
        title="One worker's TF_CONFIG gives another worker a wrong port",
        script="tf_mwms.py",
        expects="JOIN007",
        fault="wrong-port",
        inside=True,
        exit_codes=(3,),
    ),
}
