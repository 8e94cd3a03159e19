pdsh -w n[0-1] 'cd /w && accelerate launch --config_file node.yaml tune.py'
