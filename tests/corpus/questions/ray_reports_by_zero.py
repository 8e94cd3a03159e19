import torch
from ray import train
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer


def train_func(config):
    model = train.torch.prepare_model(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if train.get_context().get_world_rank() == 0:
            train.report({"loss": loss.item(), "epoch": epoch})


trainer = TorchTrainer(train_func, train_loop_config={"lr": 0.1, "epochs": 3}, scaling_config=ScalingConfig(num_workers=4))
trainer.fit()
