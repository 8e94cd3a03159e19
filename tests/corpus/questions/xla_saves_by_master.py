import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp


def run(index):
    device = xm.xla_device()
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loss = model(torch.randn(8, 4, device=device)).sum()
        loss.backward()
        xm.optimizer_step(optimizer)
        if xm.is_master_ordinal():
            xm.save(model.state_dict(), f"epoch{epoch}.pth")


xmp.spawn(run, nprocs=8)
