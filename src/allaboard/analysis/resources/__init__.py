"""Load of hosts, and resources that will run out."""
