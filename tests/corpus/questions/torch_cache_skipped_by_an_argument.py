import torch.distributed as dist


def features(args, validate=False):
    if args.local_rank not in (-1, 0) and not validate:
        dist.barrier()
    data = tokenize(args, "dev" if validate else "train")
    if args.local_rank == 0 and not validate:
        dist.barrier()
    return data


def validate(args, model):
    data = features(args, validate=True)
    return score(model, data)


def main(args):
    dist.init_process_group("nccl")
    model = train(args, features(args))
    if args.do_eval and args.local_rank in (-1, 0):
        print(validate(args, model))


main(parse())
