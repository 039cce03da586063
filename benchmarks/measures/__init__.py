"""What the parts of Foreword cost, one question a module: `measure()` gives its figures by name.

Each runs in a process of its own, `python -m benchmarks.measures sections`, in every round of the benchmarks.
"""
