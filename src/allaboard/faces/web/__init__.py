"""The web page of a run: a client of the feed that serves browsers. Needs aiohttp (extra `web`)."""
