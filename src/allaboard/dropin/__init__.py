"""The roll call from within a script: the frameworks' own calls, bounded and explained."""
