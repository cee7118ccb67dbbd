"""The slow, obvious reference for converted models: the whole graph once per step, with one queue per delayed edge.

    arrived[t] = sum_k kappa[k] source[t - k]          a queue starts empty, or with what branches compute at rest

It shares with the library the captured graph and the list of delayed edges, and nothing else: neither stages, segments
and films nor sizes of batches.
"""

from collections import defaultdict

import torch
from torch import fx

import cascaded
from cascaded.cascade.convert.graph import ones, op_name
from cascaded.cascade.convert.randomness import blank, draw_mask, is_drawn
from cascaded.cascade.convert.statistics import layer_of


def weights(kernel, length):
    """The kernel's weights: kappa[0], kappa[1], ..."""
    if isinstance(kernel, cascaded.ExponentialSmoothing):
        return [(1 - kernel.alpha) * kernel.alpha**k for k in range(length)]
    return [*kernel.weights, *[0.0] * length][:length]


class Naive:
    """A converted model, simulated.

    Attributes:
        history: The value of every node at every step.
    """

    def __init__(self, net, call, kernel=None, seed=None):
        self.net, self.call, self.kernel = net, call, kernel or cascaded.OneStepDelay()
        self.plan = net.ready(call).plan
        self.captured = self.plan.captured
        self.rows = {}  # running statistics per layer and step, where they differ from the model's own
        self.queues = defaultdict(list)
        self.history = []
        self.seed, self.drawn = seed, {}  # random numbers are drawn at the first step

    def run(self, steps, inputs=None):
        """Outputs at every step; `inputs` may give other input tensors per step."""
        if self.seed is not None:
            torch.manual_seed(self.seed)
        if self.net.options.start == "rest" and self.kernel.lag:
            self.step(0, self.call.leaves())
        for step in range(1, steps + 1):
            self.step(step, self.call.leaves() if inputs is None else inputs[step - 1])
        return torch.stack([values[self.captured.output] for values in self.history])

    def step(self, number, inputs):
        values = dict(zip(self.captured.inputs, inputs, strict=True)) | self.captured.constants
        for node, name in self.captured.state.items():
            owner, _, leaf = name.rpartition(".")
            values[node] = getattr(self.net.model.get_submodule(owner), leaf)
        for node in self.captured.graph.nodes:
            if node.op == "get_attr":
                values[node] = getattr(self.captured.root, node.target)
            elif node.op == "call_function":
                values[node] = self.compute(node, values, number)
                if node is self.plan.stem and number == 0:
                    values[node] = torch.zeros_like(values[node])
        for source, user in self.plan.delayed:
            self.queues[source, user].append(values[source])
        if self.plan.stem is not None and number > 0:
            self.queues[self.plan.stem].append(values[self.plan.stem])
        if number > 0:
            self.history.append(values)

    def compute(self, node, values, number):
        if node not in self.drawn:
            value = self.computed(node, values, number)
            if not is_drawn(node):
                return value
            self.drawn[node] = value
        return self.drawn[node]

    def computed(self, node, values, number):
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda source: self.argument(source, node, values, number))
        if node.target in (blank, draw_mask):
            args = (ones(node, self.call.batch), *args)
        if op_name(node) == "batch_norm":
            mean, var = self.rows.get((layer_of(node, self.captured.state), number), args[3:5])
            args = (*args[:3], *(None if each is None else each.clone() for each in (mean, var)), *args[5:])
        if op_name(node) == "add_":
            return None  # a batch norm counts its batches
        return node.target(*args, **kwargs)

    def argument(self, source, user, values, number):
        if (source, user) in self.plan.delayed:
            past = self.queues[source, user]  # values of the steps before this one
            return self.arrived([values.get(source), *reversed(past)], values[source])
        if source is self.plan.stem and number > 0:  # the stem's lag was step 0
            past = [values[source], *reversed(self.queues[source])]
            taps = weights(self.kernel, len(past) + 1)[self.kernel.lag :]
            return sum(weight * x for weight, x in zip(taps, past, strict=False) if weight)
        return values[source]

    def arrived(self, newest_first, like):
        total = torch.zeros_like(like)
        for weight, x in zip(weights(self.kernel, len(newest_first)), newest_first, strict=True):
            if weight:
                total = total + weight * x
        return total
