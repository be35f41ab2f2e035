"""Fuzzing: properties checked on random input, each against a reference or one rule.

A target (``targets/``) is a function of a :class:`~tests.fuzz.source.Source`, which makes its
choices from a byte string. So one byte string is one case, whatever the version of any library,
and a failing one can be kept as a regression example (``found.jsonl``).

``make test`` runs every target on a few derandomised cases and on all kept examples
(``test_targets.py``). ``make fuzz`` runs them for some minutes on random cases, in processes with
limited memory and time (``driver.py``), without pytest and Hypothesis.
"""
