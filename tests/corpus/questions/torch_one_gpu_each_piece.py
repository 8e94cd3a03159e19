os.environ['CUDA_VISIBLE_DEVICES'] = str(args.local_rank)
torch.cuda.set_device(0)
net = torch.nn.parallel.DistributedDataParallel(
net, device_ids=[0], output_device=0)
