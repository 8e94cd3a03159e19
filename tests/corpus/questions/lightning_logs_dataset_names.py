import lightning as L
import torch


class MultiSet(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx):
        loss = self.net(batch["image"]).mean()
        self.log(f"train/loss_{batch['dataset']}", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        losses = {name: self.net(batch[name]).mean() for name in batch}
        self.log_dict(losses, sync_dist=True)


trainer = L.Trainer(devices=4, strategy="ddp")
