"""Another script than the others run: it does the same, and nobody can know that."""

import torch_ddp

if __name__ == "__main__":
    torch_ddp.main()
