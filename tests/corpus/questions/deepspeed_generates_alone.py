import os

import deepspeed
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

here = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(here)
deepspeed.init_distributed()


def settings(offload):
    return {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 3, "offload_param": {"device": offload}},
    }


name = "bigscience/bloom-7b1"
net = AutoModelForCausalLM.from_pretrained(name)
engine = deepspeed.initialize(model=net, config=settings("cpu"))[0]
engine.module.eval()
tokens = AutoTokenizer.from_pretrained(name)
prompts = ["The weather is", "Once upon a time there was a king who"]
text = prompts[torch.distributed.get_rank() % 2]
ids = tokens(text, return_tensors="pt").input_ids.to(here)
print(tokens.decode(engine.module.generate(ids, max_new_tokens=200)[0]))
