import pytorch_lightning as pl

from mm import Model, Data

if __name__ == "__main__":
    trainer = pl.Trainer(gpus=2, num_nodes=1, accelerator="ddp")
    trainer.fit(Model(), Data())
