"""A job that trains for real and lacks something: with --fault no-init the call of init, with accelerate
the option for the CPU."""

import argparse
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="no-init")
    parser.add_argument("--steps", type=int, default=60)
    options, _ = parser.parse_known_args()
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    backward = torch.Tensor.backward
    if options.fault == "accelerate-alone":
        from accelerate import Accelerator

        accelerator = Accelerator()
        model, optimizer = accelerator.prepare(model, optimizer)
        backward = accelerator.backward
    for _ in range(options.steps):
        optimizer.zero_grad()
        backward(model(torch.randn(8, 16)).square().mean())
        optimizer.step()
        time.sleep(0.05)
    print("trained")


if __name__ == "__main__":
    main()
