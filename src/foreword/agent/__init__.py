"""Agents: who assembles once per step, asks a model, runs the tools it wants, and records all of it."""
