"""Python scripts read as syntax trees; nothing is executed."""
