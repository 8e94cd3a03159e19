import os
import tempfile

import lightning.pytorch as pl
import ray.train
from ray.train import Checkpoint
from ray.train.torch import TorchTrainer


class Report(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        should_checkpoint = trainer.current_epoch % 3 == 0
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            is_first = ray.train.get_context().get_world_rank() == 0
            if is_first and should_checkpoint:
                path = os.path.join(folder, "ckpt.pt")
                trainer.save_checkpoint(path, weights_only=False)
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics={}, checkpoint=checkpoint)


def train():
    trainer = pl.Trainer(max_epochs=9, callbacks=[Report()])
    trainer.fit(build())


TorchTrainer(train, scaling_config=ray.train.ScalingConfig(num_workers=2)).fit()
