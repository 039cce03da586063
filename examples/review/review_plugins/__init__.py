"""The plugins that `foreword.yaml` beside this package mounts.

Each is a function. Its parameters say what it needs: the `SystemPrompt`, in which what it registers is its own to the
last character; a config; a service that another plugin provides. None knows who else is there.
"""
