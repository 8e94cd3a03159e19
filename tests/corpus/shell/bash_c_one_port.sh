#!/bin/bash
bash -lc "torchrun --master-port 29501 a.py & torchrun --master-port 29501 b.py; wait"
