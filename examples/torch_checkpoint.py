"""Train on handwritten digits with PyTorch DDP, and go on from the last checkpoint after a failure.

Started again, by a person or by a launcher, the script finds its checkpoint and continues with the
next step; the result is that of a run that never failed::

    allaboard run -n 2 --on-failure restart examples/torch_checkpoint.py --checkpoint digits.pt
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn  # DDP would import it too late: see torch_digits.py
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch DDP that goes on where it was")
    parser.add_argument("--checkpoint", type=Path, default=Path("torch_checkpoint.pt"))
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    return parser.parse_args()


def load_data() -> tuple[torch.Tensor, torch.Tensor]:
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).flatten(1)
    return images, torch.tensor(digits.target, dtype=torch.int64)


def batch(step: int, size: int, total: int) -> torch.Tensor:
    """The indices of one global batch, a function of the step alone: whoever goes on in the middle of
    an epoch gets the batches that were still to come."""
    epoch, at = divmod(step, total // size)
    order = torch.randperm(total, generator=torch.Generator().manual_seed(epoch))
    return order[at * size : (at + 1) * size]


def save(path: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Under another name first: whoever is killed while it writes leaves the old one whole."""
    new = path.with_name(path.name + ".new")
    torch.save(
        {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, new
    )
    new.replace(path)


def train(args: argparse.Namespace, device: torch.device) -> None:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    images, labels = load_data()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    done = 0
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
        if rank == 0:
            print(f"going on after step {done}", flush=True)
    parallel = DistributedDataParallel(model)
    loss_fn = nn.CrossEntropyLoss()
    loss = torch.zeros((), device=device)
    for step in range(done, args.steps):
        mine = batch(step, args.batch_size * world_size, len(labels))[rank::world_size]
        optimizer.zero_grad()
        loss = loss_fn(parallel(images[mine].to(device)), labels[mine].to(device))
        loss.backward()
        optimizer.step()
        if rank == 0 and (step + 1) % args.every == 0:
            save(args.checkpoint, step + 1, model, optimizer)
            print(f"step {step + 1:4d}  loss {loss.item():.4f}", flush=True)
        time.sleep(args.pause)
    with torch.no_grad():
        scores = model(images.to(device))
        right = (scores.argmax(1) == labels.to(device)).float().mean()
        whole = loss_fn(scores, labels.to(device))
    if rank == 0:
        print(f"after step {args.steps}: loss {whole:.6f}, accuracy {right:.3f}", flush=True)


def main() -> None:
    args = parse_args()
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda", torch.cuda.current_device()) if use_cuda else torch.device("cpu")
    dist.init_process_group("nccl" if use_cuda else "gloo")
    train(args, device)
    time.sleep(0.2)  # see torch_digits.py
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
