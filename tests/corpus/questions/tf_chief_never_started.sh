#!/bin/bash
TF_CONFIG='{"cluster": {"chief": ["10.2.0.4:2222"], "worker": ["10.2.0.4:2223", "10.2.0.4:2224"]}, "task": {"type": "worker", "index": 0}}' python train.py &
TF_CONFIG='{"cluster": {"chief": ["10.2.0.4:2222"], "worker": ["10.2.0.4:2223", "10.2.0.4:2224"]}, "task": {"type": "worker", "index": 1}}' python train.py &
wait
