    if rank == 0:
            with torch.no_grad():
                net.eval()
                for n, sample in enumerate(valid):

                    with torch.cuda.amp.autocast():
                        out = net.module(sample["x"].cuda())
                        loss = loss_fn(out, sample["y"].cuda())
                print("validation: " + str(loss.item()))
                net.train()
        dist.barrier()
