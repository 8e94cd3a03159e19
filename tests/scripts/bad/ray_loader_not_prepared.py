import ray
import torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import ToTensor

from nets import Net


def train_func(config):
    data = datasets.FashionMNIST("~/data", train=True, download=False, transform=ToTensor())
    loader = DataLoader(data, batch_size=config["batch_size"], shuffle=True)
    model = ray.train.torch.prepare_model(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    loss_fn = torch.nn.CrossEntropyLoss()
    for epoch in range(config["epochs"]):
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        ray.train.report({"loss": loss.item()})


trainer = TorchTrainer(
    train_func,
    train_loop_config={"lr": 1e-3, "batch_size": 64, "epochs": 4},
    scaling_config=ScalingConfig(num_workers=4, use_gpu=False),
)
trainer.fit()
