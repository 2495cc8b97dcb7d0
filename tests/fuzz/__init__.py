"""Fuzzing: random tables, hostile inputs and damaged files, each case reproducible from (what, seed, number).

``python -m tests.fuzz --what exactness --seed 1 --cases 1000`` runs it, ``make fuzz`` is the same. The kinds are

- ``exactness``: the fast engines against scikit-learn itself, and neighbours against the documented rule;
- ``inputs``: hostile values for every public name and for the command line;
- ``files``: damaged checkpoints, stores, tables and study files.
"""
