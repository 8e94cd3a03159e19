#!/bin/bash
deepspeed --hostfile hostfile --include="node1:0,1@node3:0,1" train.py
