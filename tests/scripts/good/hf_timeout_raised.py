from datasets import load_dataset
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", ddp_timeout=14_400)
with args.main_process_first():
    corpus = load_dataset("json", data_files="corpus.json")["train"].map(tokenise)
Trainer(model=model(), args=args, train_dataset=corpus).train()
