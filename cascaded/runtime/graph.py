"""ONNX graphs, written node by node; all files of a network share one file of weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from cascaded.errors import InputError
from cascaded.runtime.exported import BATCH, Shape

OPSET, IR_VERSION = 17, 8
"""Fixed, so that a file does not depend on the installed version of onnx; ONNX Runtime reads them since 1.12."""
ALIGNED = 64
"""Weights start at multiples of this many bytes."""


def import_onnx() -> Any:
    """The onnx package."""
    try:
        import onnx  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:
        raise InputError(f"the export needs onnx ({error}): pip install 'cascaded[export]'") from error
    return onnx


class Weights:
    """The weights of several graphs in one file; equal ones are stored once.

    Steps differ in few weights: norm statistics, heads, and which blocks are computed at all.
    """

    def __init__(self, file: Path):
        self.file, self.size, self.places = file, 0, dict[bytes, tuple[int, int]]()
        file.touch()

    def add(self, array: np.ndarray, first: int | None = None) -> tuple[int, int]:
        """Store an array; returns its offset and its length in bytes.

        Args:
            array: The array.
            first: For a stack of arrays, the first one that is used; each of them is found again on its own.
        """
        content = array.tobytes()
        key = hashlib.sha256(content).digest()
        if key not in self.places:
            padding = bytes(-self.size % ALIGNED)
            with self.file.open("ab") as opened:
                opened.write(padding + content)
            self.places[key] = self.size + len(padding), len(content)
            self.size += len(padding) + len(content)
        offset, length = self.places[key]
        if first is None:
            return offset, length
        row = length // len(array)
        for number, each in enumerate(array):
            self.places.setdefault(hashlib.sha256(each.tobytes()).digest(), (offset + number * row, row))
        return offset + first * row, length - first * row


class Graph:
    """A graph that computes named outputs from named inputs. Values in it are known by their names.

    Attributes:
        reads: Shapes of the inputs by name.
        writes: Shapes of the outputs by name.
        anchor: An input that may be read to find the number of items, if no other is; its name and shape.
    """

    def __init__(self, weights: Weights):
        self.anchor: tuple[str, Shape] | None = None
        self.onnx, self.weights = import_onnx(), weights
        self.reads, self.writes = dict[str, Shape](), dict[str, Shape]()
        self._nodes, self._constants, self._outputs = [], dict[str, Any](), dict[str, str]()

    def input(self, name: str, shape: Shape) -> str:
        """An input of the graph; the same one if it is there already."""
        self.reads[name] = shape
        return name

    def output(self, name: str, value: str, shape: Shape) -> None:
        """Make a value an output of the graph."""
        if value in self.reads or value in self._outputs:
            value = self.node("Identity", value)
        self.writes[name], self._outputs[value] = shape, name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Compute a value; returns its name."""
        value = f"value.{len(self._nodes)}"
        self._nodes.append((kind, inputs, value, attributes))
        return value

    def constant(self, tensor: Tensor, first: int | None = None) -> str:
        """Weights, in single precision; integers and truth values as they are; of a stack, those from `first` on."""
        tensor = tensor.detach().cpu()
        array = (tensor.float() if tensor.is_floating_point() else tensor).contiguous().numpy()
        offset, length = self.weights.add(array, first)
        array = array[first:]
        name = f"weight.{offset}.{'x'.join(map(str, array.shape))}.{array.dtype}"
        proto = self.onnx.TensorProto(name=name, dims=array.shape)
        proto.data_type = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        proto.data_location = self.onnx.TensorProto.EXTERNAL
        for key, text in (("location", self.weights.file.name), ("offset", offset), ("length", length)):
            proto.external_data.add(key=key, value=str(text))
        return self._keep(proto)

    def number(self, value: float) -> str:
        """One number."""
        return self._keep(self.onnx.numpy_helper.from_array(np.float32(value), f"number.{value!r}"))

    def numbers(self, *values: float) -> str:
        """A vector of numbers that a runtime must know when it opens a file, unlike weights."""
        name = f"numbers.{'.'.join(map(repr, values))}"
        return self._keep(self.onnx.numpy_helper.from_array(np.array(values, np.float32), name))

    def integer(self, value: int) -> str:
        """One integer: a position."""
        return self._keep(self.onnx.numpy_helper.from_array(np.int64(value), f"integer.{value}"))

    def integers(self, *values: int) -> str:
        """A vector of integers: a shape, or positions."""
        name = f"integers.{'.'.join(map(str, values))}"
        return self._keep(self.onnx.numpy_helper.from_array(np.array(values, np.int64), name))

    def batch(self) -> str:
        """The number of items, as a vector of one integer."""
        if not self.reads and self.anchor is not None:
            self.input(*self.anchor)
        name, shape = next(iter(self.reads.items()))
        axis = shape.index(BATCH)
        return self.node("Shape", name, start=axis, end=axis + 1)

    def _keep(self, proto: Any) -> str:
        self._constants[proto.name] = proto
        return proto.name

    def save(self, file: Path) -> None:
        """Write the graph."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        named = self._outputs
        nodes = [
            helper.make_node(operator, [named.get(each, each) for each in inputs], [named.get(value, value)], **given)
            for operator, inputs, value, given in self._nodes
        ]
        ends = [
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in each.items()]
            for each in (self.reads, self.writes)
        ]
        graph = helper.make_graph(nodes, file.stem, *ends, initializer=list(self._constants.values()))
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="cascaded"
        )
        file.write_bytes(model.SerializeToString(deterministic=True))
