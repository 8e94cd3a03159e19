"""One module for what each launcher, server, scheduler or vendor around a framework writes."""
