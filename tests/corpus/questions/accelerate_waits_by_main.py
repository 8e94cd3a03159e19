
if accelerator.sync_gradients and accelerator.is_main_process and step % args.every == 0:
        log.info(f"a checkpoint at {step=}")
        os.makedirs(folder, exist_ok=True)

        # write
        accelerator.wait_for_everyone()   # nothing comes after this
        weights = accelerator.unwrap_model(net).state_dict()
