"""The heart: contributions become a prompt, one module a stage. Start with `pipeline`."""
