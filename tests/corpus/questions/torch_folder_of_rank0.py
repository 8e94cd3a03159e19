import logging
from pathlib import Path

import paddle
import torch.distributed as dist


class Experiment:
    def __init__(self, config, args):
        self.args = args
        dist.init_process_group("nccl")

    def setup_output_dir(self):
        output_dir = Path(self.args.output).expanduser()
        if dist.get_rank() == 0:
            output_dir.mkdir(parents=True)
        self.output_dir = output_dir
        handler = logging.FileHandler(str(output_dir / f"log_{dist.get_rank()}.txt"))
        logging.getLogger().addHandler(handler)
