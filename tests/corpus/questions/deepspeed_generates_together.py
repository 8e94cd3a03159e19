import os

import deepspeed
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

here = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(here)
deepspeed.init_distributed()
name = "bigscience/bloom-7b1"
net = AutoModelForCausalLM.from_pretrained(name)
config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
engine = deepspeed.initialize(model=net, config=config)[0]
tokens = AutoTokenizer.from_pretrained(name)
ids = tokens("The weather is", return_tensors="pt").input_ids.to(here)
print(tokens.decode(engine.module.generate(ids, synced_gpus=True)[0]))
