import argparse
import lightning.pytorch as pl
from mylib import Lit, data

p = argparse.ArgumentParser()
p.add_argument("--devices", type=int, default=4)
p.add_argument("--num_nodes", type=int, default=2)
args = p.parse_args()
trainer = pl.Trainer(accelerator="gpu", devices=args.devices, num_nodes=args.num_nodes, strategy="ddp")
trainer.fit(Lit(), data())
