"""Fuzzing: properties that are tried on random input, each against a reference or one rule.

A target (``targets/``) is a function of a :class:`~tests.fuzz.source.Source`, which makes its
choices from a string of bytes. So one string of bytes is one case, whatever the version of any
library, and a failing one can be kept as a regression example (``found.jsonl``).

``make test`` runs every target on a few derandomised cases and on all kept examples
(``test_targets.py``). ``make fuzz`` runs them for some minutes on random cases, in processes under
limits of memory and time (``driver.py``). This needs neither pytest nor Hypothesis.
"""
