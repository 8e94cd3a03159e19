"""Series of measurements that the job state keeps: rates, shares, trends. Pure but for their memory."""
