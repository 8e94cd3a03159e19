"""The meaning of facts before any rule reports them: stacks, stalls, and causes and consequences of
failures."""
