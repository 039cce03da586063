"""What share of each request is an unchanged prefix of the one before, which is what a provider can cache.

A session of 50 steps with the medium workload. Before each step exactly one of three facts changes, in turn: the time,
the state of git, the list of tasks. Each step adds a tool call and its answer to the history. There is no clock and no
randomness in it. Foreword and Pydantic AI run themselves; the others are laid out as their users write them.

    python -m benchmarks.prefix
"""
