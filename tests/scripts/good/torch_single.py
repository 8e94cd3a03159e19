import torch
from torch.utils.data import DataLoader

loader = DataLoader(torch.randn(64, 2), shuffle=True, batch_size=8)
model = torch.nn.Linear(2, 1).cuda()
for epoch in range(3):
    for x in loader:
        try:
            model(x.to("cuda")).sum().backward()
        except RuntimeError:
            continue
torch.save(model.state_dict(), "model.pt")
