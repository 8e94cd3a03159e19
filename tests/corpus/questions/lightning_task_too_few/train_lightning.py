from pytorch_lightning import Trainer
from pytorch_lightning.demos.boring_classes import BoringDataModule, BoringModel


def main():
    trainer = Trainer(max_epochs=100)
    print(trainer.num_devices)
    trainer.fit(BoringModel(), BoringDataModule())


if __name__ == "__main__":
    main()
