"""Faults in jobs with MultiWorkerMirroredStrategy."""

from __future__ import annotations

from functools import partial

from allaboard.contracts import Drill
from allaboard.drills.base_rows import hang_drill, lasting_drill, start_drill
from allaboard.launch.signals import continue_process, kill_process, stop_process

mwms_drill = partial(Drill, script="tf_mwms.py", inside=True)
mwms_start_drill = partial(start_drill, script="tf_mwms.py")
mwms_hang_drill = partial(hang_drill, script="tf_mwms.py")

DRILLS = {
    "tf-asleep": mwms_hang_drill(
        title="A TensorFlow worker sleeps in the middle of training",
        expects="HANG005",
        fault="asleep",
    ),
    "tf-asleep-before-init": mwms_start_drill(
        title="A TensorFlow worker sleeps before it creates the strategy",
        expects="JOIN002",
        fault="asleep-before-init",
        options=("--timeout", "6", "--timeout-hard", "14"),
    ),
    "tf-asleep-reduce": mwms_hang_drill(
        title=(
            "A TensorFlow worker sleeps between a step and the reduction of its result, in which "
            "the others wait, as under Keras' `fit` when one worker sleeps in a callback"
        ),
        expects="HANG005",
        fault="asleep-before-reduce",
        arguments=("--eager",),
    ),
    "tf-collectives-differ": mwms_drill(
        title=(
            "A TensorFlow worker calls a collective of another dtype while the others reduce their "
            "gradients"
        ),
        expects="EXIT009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        fault="collectives-differ",
    ),
    "tf-dies-before-init": mwms_start_drill(
        title="A TensorFlow worker raises before it creates the strategy",
        expects="JOIN003",
        fault="dies-before-init",
        # TensorFlow may take longer to import than the exception is held back for the roll call.
        allowed=("EXIT002",),
    ),
    "tf-exception": mwms_drill(
        title="A TensorFlow worker raises in the middle of training",
        expects="EXIT002",
        fault="exception",
    ),
    "tf-generator-starved": Drill(
        title=(
            "The generator that feeds a TensorFlow worker waits for a thread of the program that has ended"
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
    "tf-leaves-early": mwms_drill(
        title="A TensorFlow worker ends with exit code 0 while the others train",
        expects="EXIT004",
        fault="leaves-early",
    ),
    "tf-lists-ps": lasting_drill(
        title=(
            "TF_CONFIG of a MultiWorkerMirroredStrategy lists a parameter server that is not started"
        ),
        script="tf_mwms.py",
        expects="PS009",
        workers=2,
        guilty=0,
        blames=(0, 1),
        fault="lists-ps",
    ),
    "tf-nan-loss": lasting_drill(
        title=(
            "The batch of a TensorFlow worker is not finite; the average spreads it to all workers"
        ),
        script="tf_mwms.py",
        expects="NUM005",
        workers=2,
        guilty=1,
        blames=(0, 1),
        fault="nan-loss",
    ),
    "tf-no-cluster": mwms_start_drill(
        title="One worker has a TF_CONFIG without a cluster and would train alone",
        expects="JOIN006",
        workers=3,
        fault="no-cluster",
        guilty=2,
    ),
    "tf-order": mwms_start_drill(
        title="One worker's TF_CONFIG lists the workers in another order",
        expects="JOIN007",
        fewest=3,
        fault="order",
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
    "tf-stuck-in-python": mwms_hang_drill(
        title="A TensorFlow worker loops forever in its own code",
        expects="HANG002",
        fault="stuck-in-python",
    ),
    "tf-two-tasks": mwms_start_drill(
        title="Two workers have the same task index",
        expects="JOIN005",
        fault="two-tasks",
        blames=(0,),
    ),
    "tf-wrong-port": mwms_start_drill(
        title="One worker's TF_CONFIG gives another worker a wrong port",
        expects="JOIN007",
        fault="wrong-port",
    ),
    "tf-keras-3-fit": Drill(
        title="Workers call `fit` of Keras 3 under MultiWorkerMirroredStrategy",
        script="tf_keras.py",
        expects="EXIT002",
        workers=2,
        blames=(0, 1),
        inside=True,
        fault="fit",
    ),
    "tf-one-file": Drill(
        title="Two workers distribute a dataset that is one file",
        script="tf_keras.py",
        expects="EXIT002",
        workers=2,
        blames=(0,),
        inside=True,
        fault="one-file",
    ),
}
