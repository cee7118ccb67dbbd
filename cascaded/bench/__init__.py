"""Benchmarks: time, memory and operations of a cascade relative to the published loop and a serial pass."""
