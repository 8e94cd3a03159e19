from accelerate import Accelerator
from tqdm.auto import tqdm

accelerator = Accelerator()
model, optimizer, loader, val = accelerator.prepare(model, optimizer, loader, val)
bar = tqdm(range(epochs * len(loader)), disable=not accelerator.is_local_main_process)
for epoch in range(epochs):
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        bar.update(1)
        if bar.n % 500 == 0:
            for held in val:
                guesses = model(**held).logits.argmax(-1)
                both = accelerator.gather_for_metrics((guesses, held["labels"]))
                metric.add_batch(*both)
