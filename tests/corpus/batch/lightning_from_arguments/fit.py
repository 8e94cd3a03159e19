import lightning as L

L.Trainer(devices=args.devices, num_nodes=args.nodes).fit(module(), data())
