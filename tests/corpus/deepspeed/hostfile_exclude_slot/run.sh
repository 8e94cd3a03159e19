#!/bin/bash
deepspeed --hostfile hostfile --exclude="node2:4" train.py
