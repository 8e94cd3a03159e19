#!/bin/bash
horovodrun -np 12 --hostfile hostfile python fit.py
