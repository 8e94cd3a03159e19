from datasets import load_dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

training_args = Seq2SeqTrainingArguments(output_dir="run", per_device_train_batch_size=4)
with training_args.main_process_first(desc="tokenise the corpus"):
    corpus = load_dataset("json", data_files="corpus.json")["train"]
    corpus = corpus.map(tokenise, num_proc=8)
Seq2SeqTrainer(model=model(), args=training_args, train_dataset=corpus).train()
