"""The presets of the paper's comparison; :mod:`lgcn.training.presets` describes the files."""
