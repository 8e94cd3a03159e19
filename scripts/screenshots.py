"""Takes the pictures of the web page for the docs: screenshots.py [FOLDER], docs/images if none is named.

It starts a real job of eight ranks with its page, stops one worker as Ctrl-Z would, and photographs the page
in a Chromium without a screen. Needs the extras torch, web and test, and chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs/images"
RANKS = 8
STOPPED = 5
TRAINING_S = 25
"""Seconds of training before the worker is stopped, so that the plots show something."""
HANGING_S = 12
SCRIPT = """\
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
target = torch.randn(64, 1)
model = DistributedDataParallel(torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)


def train():
    for step in range(1_000_000):
        batch = torch.randn(64, 64)
        loss = torch.nn.functional.mse_loss(model(batch), batch @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.4 if step % 60 == 59 else 0.1)
        done = loss.detach().clone()
        dist.all_reduce(done)


train()
"""


def start_job(folder: Path) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(SCRIPT)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["run", "-n", str(RANKS), "--run-dir", "run", "--web=0", "--", "python", "train.py"]
    return subprocess.Popen(
        [sys.executable, "-m", "allaboard", *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def pid_of_rank(page: Page, rank: int) -> int:
    """Select a rank in the grid, and return the pid that the page shows."""
    page.focus("#grid")
    for _ in range(rank + 1):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#selected")).to_contain_text(f"rank {rank} · pid")
    shown = re.search(r"pid (\d+)", page.inner_text("#selected"))
    assert shown
    return int(shown[1])


def photograph(browser: Browser, url: str, images: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 860})
    page.goto(url)
    expect(page.locator("#legend")).to_contain_text("training", timeout=120_000)
    page.wait_for_timeout(TRAINING_S * 1000)
    victim = pid_of_rank(page, STOPPED)
    os.kill(victim, signal.SIGSTOP)
    try:
        expect(page.locator("details.error")).to_be_visible(timeout=30_000)
        page.wait_for_timeout(HANGING_S * 1000)
        page.screenshot(path=images / "web-hang.png")
        page.keyboard.press("s")
        expect(page.locator("#flame .call").first).to_be_visible(timeout=30_000)
        page.set_viewport_size({"width": 1200, "height": 1010})
        page.wait_for_timeout(500)
        page.locator("#timeline-title").evaluate("node => node.scrollIntoView()")
        page.evaluate("window.scrollBy(0, -document.querySelector('header').offsetHeight - 12)")
        page.screenshot(path=images / "web-stacks.png")
        phone = browser.new_page(viewport={"width": 390, "height": 780}, color_scheme="dark")
        phone.goto(url)
        expect(phone.locator("details.error")).to_be_visible(timeout=30_000)
        phone.screenshot(path=images / "web-phone.png")
    finally:
        os.kill(victim, signal.SIGCONT)


def main() -> int:
    images = Path(sys.argv[1]) if sys.argv[1:] else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("there is no chromium; on Debian: apt-get install chromium")
        return 1
    with tempfile.TemporaryDirectory(prefix="train-") as folder, sync_playwright() as playwright:
        job = start_job(Path(folder))
        try:
            assert job.stderr is not None
            url = re.search(r"http://\S+", job.stderr.readline())
            assert url, "the page is not served"
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            photograph(browser, url[0], images)
            browser.close()
        finally:
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=60)
    print(*sorted(images.glob("web-*.png")), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
