if accelerator.is_main_process:
        plain = accelerator.unwrap_model(net)

        weights = accelerator.get_state_dict(net)
        plain.save_pretrained(folder, state_dict=weights)

        words.save_pretrained(folder)

    else:
        accelerator.wait_for_everyone()
