import ray
from ray.train.torch import TorchTrainer
from ray.train import ScalingConfig
import torch
def train_func(config):
    model = ray.train.torch.prepare_model(torch.nn.Linear(1, 1))
    loader = ray.train.torch.prepare_data_loader(torch.utils.data.DataLoader(ds, batch_size=4, shuffle=True))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
        torch.save(model.state_dict(), "m.pt")
TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=4)).fit()
