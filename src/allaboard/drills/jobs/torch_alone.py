"""A job that trains for real, and has forgotten something: with --fault no-init any init, with accelerate
that the CPU is meant."""

import argparse
import time

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="no-init")
    parser.add_argument("--steps", type=int, default=60)
    given, _ = parser.parse_known_args()
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    backward = torch.Tensor.backward
    if given.fault == "accelerate-alone":
        from accelerate import Accelerator

        accelerator = Accelerator()
        model, optimizer = accelerator.prepare(model, optimizer)
        backward = accelerator.backward
    for _ in range(given.steps):
        optimizer.zero_grad()
        backward(model(torch.randn(8, 16)).square().mean())
        optimizer.step()
        time.sleep(0.05)
    print("trained")


if __name__ == "__main__":
    main()
