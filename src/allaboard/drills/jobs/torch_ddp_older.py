"""A copy of the script with other text: it does the same, which allaboard cannot know."""

import torch_ddp

if __name__ == "__main__":
    torch_ddp.main()
