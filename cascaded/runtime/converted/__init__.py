"""Converted models as ONNX graphs: operations, segments, steps and files."""
