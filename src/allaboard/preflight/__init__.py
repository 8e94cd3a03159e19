"""`allaboard preflight`: the roll call of a job, without the job."""
