#!/bin/bash
srun -N 1 --ntasks 2 --gres=gpu:2 python work.py
