"""One file a rule: `<code>_<name>.py`, its docstring the page, ending in `RULE = Rule(...)`."""
