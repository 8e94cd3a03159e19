"""Every way in which the ranks of a healthy job can meet, staged with one agent for each rank."""
