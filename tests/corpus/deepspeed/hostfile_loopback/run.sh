#!/bin/bash
deepspeed --hostfile hostfile --master_addr=127.0.0.1 train.py
