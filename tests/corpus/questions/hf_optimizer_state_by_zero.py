import os

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from transformers import Trainer


class FSDPTrainer(Trainer):
    def _save_checkpoint(self, model, trial, metrics=None):
        output_dir = self._get_output_dir(trial)
        self.save_model(output_dir, _internal_call=True)
        if self.args.should_save:
            state = FSDP.full_optim_state_dict(self.model_wrapped, self.optimizer)
            torch.save(state, os.path.join(output_dir, "optimizer.pt"))
            torch.save(self.lr_scheduler.state_dict(), os.path.join(output_dir, "scheduler.pt"))
