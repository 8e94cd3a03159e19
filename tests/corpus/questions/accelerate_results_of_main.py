for epoch in range(epochs):

    net.train()

    for n, batch in enumerate(loader):
       #  a step

    # the scores of this epoch
    if accelerator.is_main_process:
        scores = sample_all(net, words, test_loader)

    with open(path, 'w') as out:
       json.dump(scores, out)

   print(mean_score())
