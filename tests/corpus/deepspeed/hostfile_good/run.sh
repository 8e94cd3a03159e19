#!/bin/bash
deepspeed --hostfile hostfile --include="node1@node2:0,3" train.py
