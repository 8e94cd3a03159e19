import lightning as L
from torch.utils.data import DataLoader


class Data(L.LightningDataModule):
    def prepare_data(self):
        self.dataset = download_and_tokenize()

    def train_dataloader(self):
        return DataLoader(self.dataset, batch_size=8)


L.Trainer(devices=4, strategy="ddp").fit(Net(), Data())
