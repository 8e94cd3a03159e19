"""What facts mean before any rule speaks: stacks, lost peers, who fell and who began it."""
