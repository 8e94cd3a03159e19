#!/bin/bash
mpirun -np 16 --oversubscribe --hostfile hostfile python train.py
