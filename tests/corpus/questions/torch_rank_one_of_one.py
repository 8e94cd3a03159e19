dist.init_process_group(backend='nccl', init_method=opt.url, world_size=1, rank=1)
