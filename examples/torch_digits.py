"""Train a small convolutional network on handwritten digits with PyTorch DDP.

Rank, world size and rendezvous come from the environment (``env://``), so any launcher that
sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT will do::

    torchrun --nproc-per-node 4 examples/torch_digits.py --epochs 30
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.distributed.nn  # DDP would import it too late: see main()
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch DDP on scikit-learn's digits")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--lr", type=float, default=2e-3)
    return parser.parse_args()


def load_data() -> tuple[TensorDataset, TensorDataset]:
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target, dtype=torch.int64)
    # A fixed seed, because every rank has to make the same split.
    train, test = train_test_split(
        range(len(labels)), test_size=0.2, random_state=0, stratify=digits.target
    )
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def build_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


@torch.no_grad()
def accuracy(model: nn.Module, test: TensorDataset, device: torch.device) -> float:
    """Each rank scores its own slice; a plain stride never pads, so no image counts twice."""
    images, labels = (part[dist.get_rank() :: dist.get_world_size()] for part in test.tensors)
    right = (model(images.to(device)).argmax(dim=1) == labels.to(device)).sum()
    counts = torch.stack([right, torch.tensor(len(labels), device=device)]).double()
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def train(args: argparse.Namespace, device: torch.device) -> None:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    train_set, test_set = load_data()
    sampler = DistributedSampler(train_set, shuffle=True, seed=0)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler, num_workers=0)
    model = DistributedDataParallel(build_model().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.CrossEntropyLoss()

    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)  # otherwise every epoch has the same order
        total = torch.zeros((), device=device)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            mean = total.item() / (len(loader) * world_size)
            print(f"epoch {epoch:3d}  loss {mean:.4f}", flush=True)

    model.eval()
    test_accuracy = accuracy(model.module, test_set, device)
    if rank == 0:
        seconds = time.perf_counter() - start
        print(f"test accuracy {test_accuracy:.3f} after {seconds:.1f} s", flush=True)


def main() -> None:
    args = parse_args()
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        # Before init_process_group, so that NCCL does not put every rank on GPU 0.
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda", torch.cuda.current_device()) if use_cuda else torch.device("cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} is ready on {device}", flush=True)
    train(args, device)
    # torch.distributed.nn has functions that keep the default group as a default argument. Had DDP
    # been the first to import it, after init, the group would outlive this call, and a Gloo thread
    # still at work while Python shuts down would abort the process (PyTorch 2.13). The pause lets
    # those threads let go of the last collective: else they and destroy may wait for each other.
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
