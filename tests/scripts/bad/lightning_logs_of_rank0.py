import lightning as L
import torch
from mylib import Net, loss_of


class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, index):
        return loss_of(self.net, batch)

    def validation_step(self, batch, index):
        loss = loss_of(self.net, batch)
        if self.global_rank == 0:
            self.log("val_loss", loss, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


L.Trainer(devices=4, strategy="ddp").fit(Lit())
