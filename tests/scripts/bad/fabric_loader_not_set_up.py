from lightning.fabric import Fabric
from torch.utils.data import DataLoader
fabric = Fabric(devices=4)
fabric.launch()
model, opt = fabric.setup(model, opt)
loader = DataLoader(ds, shuffle=True)
for x in loader:
    fabric.backward(model(x).sum())
    opt.step()
