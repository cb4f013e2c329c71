"""What the host asks before it launches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from kgen.adopted.syntax import Launch, text_of

_LEAVES = re.compile(r"\b(return|throw|exit|abort)\b")


def conditions_before(launch: Launch) -> Iterator[tuple[Node, bool]]:
    """Yield the conditions on the way to a launch, and whether it is reached if they are true."""
    node, function = launch.node, launch.function
    while node.parent is not None and node != function:
        above = node.parent
        if above.type == "if_statement":
            condition = above.child_by_field_name("condition")
            if condition is not None and node != condition:
                yield condition, node == above.child_by_field_name("consequence")
        elif above.type == "compound_statement":
            yield from _asked_before(above, node)
        node = above


def _asked_before(block: Node, node: Node) -> Iterator[tuple[Node, bool]]:
    for before in block.named_children:
        if before.start_byte >= node.start_byte:
            return
        condition = before.child_by_field_name("condition")
        if before.type == "if_statement" and condition is not None:
            if _LEAVES.search(text_of(before)) and len(before.named_children) == 2:
                yield condition, False
        elif before.type == "expression_statement" and text_of(before).startswith("assert("):
            yield before.children[0].children[-1].named_children[0], True
