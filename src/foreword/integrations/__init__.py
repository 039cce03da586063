"""Foreword beside what others run: recorders that write down what an agent sends, and change nothing of it.

`foreword.integrations.pydantic_ai` records agents of that framework, `foreword.integrations.sdk` clients of the
vendors' SDKs. A framework is imported by its own modules only; this package imports none.

    hook ─▶ formats ─▶ Told ─▶ Recording ─▶ Scribe ─▶ Book ─▶ Lane ─▶ the session log
    (http)  (a body)   (what it says)       (a thread)  (whose session)  (which events)
"""
