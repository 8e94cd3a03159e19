"""What facts mean before any rule reports them: stacks, stalls, lost peers, causes and consequences of
failures."""
