import tempfile

from ray import train
from ray.train import Checkpoint


def train_fn_per_worker(config):
    for step in range(10):
        metrics = one_step(config, step)
        if train.get_context().get_world_rank() in [2, 4, 6]:
            with tempfile.TemporaryDirectory() as tempdir:
                write(tempdir)
                train.report(metrics, checkpoint=Checkpoint.from_directory(tempdir))
        else:
            train.report(metrics)
