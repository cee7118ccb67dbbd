"""Convert every architecture of tests/architectures.py, and write what was measured to docs/architectures.md.

Run: make architectures (ten minutes), or .venv/bin/python -m scripts.architectures --names vit gpt2, which only prints
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

import cascaded
from cascaded.cascade.convert.cost import count, operations_per_step
from cascaded.errors import InputError
from tests.architectures import ARCHITECTURES, REFUSED, Architecture, call
from tests.converted import as_call, double, given, run
from tests.naive_cascade import Naive

PAGE = Path(__file__).parent.parent / "docs" / "architectures.md"
LIMIT = 1e-9
TOP = """# Architectures

*Made by `make architectures`.* Small configurations with random weights, in double precision and evaluation mode,
converted by [`cascaded.convert`](convert.md) without any code of their own. *Error* is the largest difference between
an output of any step and a naive simulation (the whole graph once per step, one queue per delayed edge); *final* is
that between the last step and the model itself. *First step* and *all steps* are operations relative to one pass
through the model; running the whole model at every step would cost as many passes as there are steps.

| architecture | skip connections | steps | error | final | first step | all steps |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
"""
REFUSALS = """
## Refused

| model | sentence |
| --- | --- |
"""


def measured(name: str, architecture: Architecture) -> str:
    """One row of the table; an architecture that is not exact ends the program."""
    torch.manual_seed(0)
    model, inputs = architecture.make()
    model, inputs = model.double(), double(inputs)
    net = cascaded.convert(model, given(inputs), output=architecture.output, **architecture.options)
    with torch.no_grad():
        outputs = run(net, inputs)
        error = float((outputs - Naive(net, as_call(inputs)).run(net.settle_steps)).abs().max())
        final = float((outputs[-1] - architecture.predicted(call(model, inputs))).abs().max())
    if max(error, final) > LIMIT:
        sys.exit(f"{name}: error {error:.1e}, final {final:.1e}, at most {LIMIT} allowed")
    steps = operations_per_step(net, given(inputs))
    whole = count(lambda: run(net, inputs, kernel=cascaded.NoDelay(), steps=1))
    kinds = Counter(join.kind for join in net.joins)
    joins = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    cells = [name, joins, str(net.settle_steps), f"{error:.0e}", f"{final:.0e}"]
    return f"| {' | '.join(cells)} | {steps[0] / whole:.2f} | {sum(steps) / whole:.2f} |"


def refused(name: str, architecture: Architecture) -> str:
    """One row of the table of refusals."""
    model, inputs = architecture.make()
    try:
        cascaded.convert(model, given(inputs), output=architecture.output, **architecture.options)
    except InputError as error:
        return f"| {name} | {str(error).replace('|', chr(92) + '|')} |"
    return sys.exit(f"{name} was converted, but must be refused")


def main() -> None:
    """Print the rows, and write the page if they are all there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", nargs="+", choices=list(ARCHITECTURES), default=list(ARCHITECTURES))
    names = parser.parse_args().names
    warnings.simplefilter("ignore")  # of other packages
    rows = []
    for name in names:
        if reason := ARCHITECTURES[name].missing():
            sys.exit(f"{name}: {reason}")
        rows.append(measured(name, ARCHITECTURES[name]))
        print(rows[-1], flush=True)
    if len(names) == len(ARCHITECTURES):
        refusals = [refused(*each) for each in REFUSED.items()]
        PAGE.write_text(TOP + "\n".join(rows) + "\n" + REFUSALS + "\n".join(refusals) + "\n")


if __name__ == "__main__":
    main()
