import torch
from accelerate import Accelerator, DeepSpeedPlugin
from transformers import AutoModelForCausalLM, AutoTokenizer

accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))
name = "facebook/opt-125m"
tokenizer = AutoTokenizer.from_pretrained(name)

with accelerator.main_process_first():
    model = AutoModelForCausalLM.from_pretrained(name)

print("loaded on", accelerator.device)
