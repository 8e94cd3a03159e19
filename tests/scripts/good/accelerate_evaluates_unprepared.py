from accelerate import Accelerator
from torch.utils.data import DataLoader
from mylib import Net, Rows, Adam

accelerator = Accelerator()
train_loader = DataLoader(Rows("train"), batch_size=8, shuffle=True)
test_loader = DataLoader(Rows("test"), batch_size=8)
net, opt = Net(), Adam()
net, opt, loader = accelerator.prepare(net, opt, train_loader)
for epoch in range(2):
    for x, y in loader:
        accelerator.backward(((net(x) - y) ** 2).mean())
        opt.step()
    if accelerator.is_main_process:
        for x, y in test_loader:
            print(((accelerator.unwrap_model(net)(x) - y) ** 2).mean())
    accelerator.wait_for_everyone()
