"""Graphs on disk: a folder of mapped arrays, its import and its generator."""
