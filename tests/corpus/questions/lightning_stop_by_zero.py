import lightning.pytorch as pl
import zmq


class ControllerCallback(pl.Callback):
    def __init__(self, address):
        super().__init__()
        self.socket = zmq.Context().socket(zmq.SUB)
        self.socket.connect(address)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero:
            try:
                message = self.socket.recv_json(zmq.NOBLOCK)
                if message.get("command") == "stop":
                    trainer.should_stop = True
            except zmq.Again:
                pass
        trainer.strategy.barrier()
