import lightning as L
import torch
from torch.utils.data import DataLoader
t = L.Trainer(devices=4, strategy='ddp', use_distributed_sampler=False)
t.fit(m, DataLoader(ds, batch_size=8, shuffle=True))
