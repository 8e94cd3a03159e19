import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from parsing import read_lines, tokens
from models import Classifier


class Lines(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        info = get_worker_info()
        paths = self.paths if info is None else self.paths[info.id :: info.num_workers]
        for path in paths:
            for line in read_lines(path):
                yield tokens(line)


class Data(pl.LightningDataModule):
    def __init__(self, paths, batch_size=64):
        super().__init__()
        self.paths = paths
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(Lines(self.paths), batch_size=self.batch_size, num_workers=4)


trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=3)
trainer.fit(Classifier(), Data(["a.txt", "b.txt", "c.txt", "d.txt"]))
