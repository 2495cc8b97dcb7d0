"""Limits that several test files share."""

from __future__ import annotations

SECONDS = 900
"""How long a test waits for another process or thread: only one that hangs may reach it.

A first call compiles kernels, which takes a minute of CPU time, and other tests may need the same cores.
"""
