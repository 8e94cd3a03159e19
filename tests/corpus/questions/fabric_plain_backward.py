import torch
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

from detector import Detector, Boxes


def main():
    fabric = Fabric(accelerator="cuda", devices=4, strategy="deepspeed_stage_2", precision="16-mixed")
    fabric.launch()
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(DataLoader(Boxes("train"), batch_size=16, shuffle=True))
    for epoch in range(12):
        for images, boxes in loader:
            loss = F.smooth_l1_loss(model(images), boxes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        fabric.print(epoch, loss.item())


if __name__ == "__main__":
    main()
