#!/bin/sh
horovodrun -np 4 -H localhost:4 python train.py
