#!/bin/sh
horovodrun -np 2 -H localhost python train.py
