import argparse

import deepspeed
import torch
from transformers import AutoModelForCausalLM

from text_data import TextDataset

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="facebook/opt-125m")
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()

config = {
    "train_micro_batch_size_per_gpu": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
    "zero_optimization": {"stage": 2},
    "bf16": {"enabled": True},
}
dataset = TextDataset("train.txt")
model = AutoModelForCausalLM.from_pretrained(args.model)
engine, _, loader, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), training_data=dataset, config=config
)
for epoch in range(args.epochs):
    for batch in loader:
        batch = batch.to(engine.device)
        loss = engine(batch, labels=batch).loss
        engine.backward(loss)
        engine.step()
engine.save_checkpoint("ckpt")
