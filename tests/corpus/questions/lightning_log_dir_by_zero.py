import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities import rank_zero_only


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, n):
        return self.layer(batch).mean()

    @rank_zero_only  # without this it trains
    def on_fit_start(self):
        print(self.trainer.log_dir)
