import lightning as L
import torch
from lightning.pytorch.utilities import rank_zero_only
from mylib import Net, loss_of


class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, index):
        return loss_of(self.net, batch)

    def validation_step(self, batch, index):
        self.log("val_loss", loss_of(self.net, batch), sync_dist=True)
        if self.trainer.is_global_zero:
            self.log("seen", float(index), rank_zero_only=True)

    @rank_zero_only
    def on_fit_end(self):
        print("done")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


L.Trainer(devices=4, strategy="ddp").fit(Lit())
