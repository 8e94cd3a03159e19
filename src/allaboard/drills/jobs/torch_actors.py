"""A program that trains on what its own processes send it: --fault says what becomes of them."""

import argparse
import multiprocessing
import time

import torch
from torch import nn


def send_episodes(queue, count, fault):
    for number in range(count):
        queue.put([number / count] * 16)
    if fault in ("actor-failed", "exit-code-read"):
        raise KeyError("pong")


def train(queue, steps):
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        batch = torch.tensor(queue.get())
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="none")
    parser.add_argument("--steps", type=int, default=60)
    options, _ = parser.parse_known_args()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(maxsize=8)
    more = 60 if options.fault == "queue-unread" else 0
    actor = context.Process(target=send_episodes, args=(queue, options.steps + more, options.fault))
    actor.start()
    train(queue, options.steps + (options.fault == "actor-failed"))
    actor.join()
    if options.fault == "exit-code-read" and actor.exitcode:
        print("the actor failed after its last episode; training on what it sent")
    print("trained")


if __name__ == "__main__":
    main()
