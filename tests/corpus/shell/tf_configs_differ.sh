TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"index": 0, "type": "worker"}}' python worker.py &
TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2223"]}, "task": {"index": 1, "type": "worker"}}' python worker.py
