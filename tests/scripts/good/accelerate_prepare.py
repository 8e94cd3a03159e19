from accelerate import Accelerator
import torch
accelerator = Accelerator()
model, opt, loader = accelerator.prepare(model, opt, torch.utils.data.DataLoader(ds, shuffle=True))
for epoch in range(3):
    for batch in loader:
        loss = model(batch).loss
        accelerator.backward(loss)
        opt.step()
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.save(model.state_dict(), "m.pt")
