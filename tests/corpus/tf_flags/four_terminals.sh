# on ps0.example.com
python trainer.py --ps_hosts=ps0.example.com:2222 --worker_hosts=w0.example.com:2222,w1.example.com:2222 --job_name=ps --task_index=0
# on w0.example.com
python trainer.py --ps_hosts=ps0.example.com:2222 --worker_hosts=w0.example.com:2222,w1.example.com:2222 --job_name=worker --task_index=0
