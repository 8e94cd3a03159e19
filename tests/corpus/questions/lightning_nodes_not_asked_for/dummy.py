import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel

if __name__ == "__main__":
    trainer = pl.Trainer(max_epochs=10, accelerator="gpu", devices=2, num_nodes=2, strategy="ddp")
    trainer.fit(BoringModel())
