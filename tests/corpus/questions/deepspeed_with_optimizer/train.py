import argparse

import deepspeed
import torch
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForCausalLM

from chat_data import ChatDataset

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()

deepspeed.init_distributed()
torch.cuda.set_device(args.local_rank)
model = AutoModelForCausalLM.from_pretrained("bigscience/bloom-1b1")
engine, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
dataset = ChatDataset("train.json")
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=2, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch in loader:
        batch = {k: v.to(engine.device) for k, v in batch.items()}
        loss = engine(**batch).loss
        engine.backward(loss)
        engine.step()
engine.save_checkpoint("out")
