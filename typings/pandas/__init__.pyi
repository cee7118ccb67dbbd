# pandas annotates a selection, df[mask], as a union of all it could be; untyped it checks without casts everywhere
from typing import Any

def __getattr__(name: str) -> Any: ...
