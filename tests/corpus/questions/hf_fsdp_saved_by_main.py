from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("HuggingFaceTB/SmolLM2-135M-Instruct")
model = AutoModelForCausalLM.from_pretrained("HuggingFaceTB/SmolLM2-135M-Instruct")
dataset = load_dataset("json", data_files="train.jsonl")["train"]
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=4,
    num_train_epochs=1,
    bf16=True,
    fsdp="full_shard auto_wrap",
    fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
)
trainer = Trainer(model=model, args=args, train_dataset=dataset)
trainer.train()
is_main = trainer.is_world_process_zero()
if is_main:
    trainer.save_model("out/final")
    tokenizer.save_pretrained("out/final")
