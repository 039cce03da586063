"""Who takes part: one module each, run by `benchmarks.entrant` in a process of its own.

A module has `VARIANTS` (the first is what is run unless told otherwise), `version()`, and a class `Entrant`, which
is made with a workload and a variant:

    add_scope(scope)    make a scope; called for each before the first step
    step(scope)         text and tools of one step; may be async
    view(tool)          name, description and parameters of what `step` gave as a tool
    register(texts)     optional: register sections, and give what undoes each; None if nothing can

It imports its library at the top: that is timed, and where it is missing, the entrant does not take part. Dynamic
sections are functions for all; whoever has no functions among its sections calls them itself in each step.
"""
