import torch
from pytorch_lightning.lite import LightningLite
from torch.utils.data import DataLoader

from mine import MyDataset, MyModel, evaluate


class Lite(LightningLite):
    def run(self, args):
        model = MyModel(args.width)
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
        model, optimizer = self.setup(model, optimizer)
        loader = self.setup_dataloaders(DataLoader(MyDataset(args.root), batch_size=16))
        model.train()
        for epoch in range(args.num_epochs):
            self.barrier()
            for batch in loader:
                optimizer.zero_grad()
                loss = model(batch)
                self.backward(loss)
                optimizer.step()
            if self.global_rank == 0:
                evaluate(model.module)
                self.save(model.state_dict(), args.path)


Lite(strategy="ddp", devices=4, accelerator="gpu").run(parse())
