"""The errors a user can meet, and nothing else.

Wrong arguments of library functions are plain ``ValueError``. The classes here are for what goes
wrong outside a call: files, configuration and runs. The command line turns them into a message and
an exit code; anything else it lets through is a bug.
"""


class LGCNError(Exception):
    """Base of the errors below. ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(LGCNError, ValueError):
    """The user asked for something that does not exist or does not fit together."""

    exit_code = 2


class DataError(LGCNError):
    """Data are missing, damaged, or not what their name promises."""


class WriteError(DataError):
    """A file could not be written; what was there before is unchanged."""


class CheckpointError(LGCNError):
    """A run folder is missing, damaged, or does not belong to the model or graph at hand."""


class TrainingDiverged(LGCNError):
    """The loss is no longer a finite number."""


class TrainingInterrupted(LGCNError):
    """The user stopped the run; its state is saved."""

    exit_code = 130
