export TASK_NAME=mrpc
accelerate launch --multi_gpu --num_processes 4 run_glue.py --task_name $TASK_NAME
