"""Tools: what a model may call. One registry says who has which tool, shows them to the prompt, and carries calls out.

```text
register ─▶ definition (schema, binding) ─▶ registry ─▶ resolver ─▶ the prompt's tools, look-up
                                                           └──────▶ execute ─▶ result
```
"""
