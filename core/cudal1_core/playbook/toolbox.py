"""All techniques of the playbook. A new one is added here, and described in docs/playbook.md."""

from __future__ import annotations

from cudal1_core.playbook import (
    activations,
    attention,
    channels_last,
    cuda_graphs,
    diagonal,
    exponentials,
    folding,
    fusion,
    inplace,
    kernel_choice,
    linear_sum,
    norms,
    pooling,
    recurrence,
    redundant,
    scalars,
    window_mean,
)
from cudal1_core.playbook.rules import GraphTechnique
from cudal1_core.playbook.technique import Technique

ALGEBRA = GraphTechnique(
    "algebraic simplification",
    "algebra",
    100,
    (redundant.RULE, linear_sum.RULE, window_mean.RULE, diagonal.RULE, pooling.RULE, scalars.RULE),
)
SPELLING = GraphTechnique(
    "library operations",
    "spelling",
    95,
    (recurrence.RULE, attention.RULE, norms.RULE, activations.RULE, exponentials.RULE),
)

TECHNIQUES: tuple[Technique, ...] = (
    ALGEBRA,
    folding.TECHNIQUE,
    SPELLING,
    inplace.TECHNIQUE,
    channels_last.TECHNIQUE,
    kernel_choice.TECHNIQUE,
    fusion.FUSION,
    fusion.SEARCHED_FUSION,
    cuda_graphs.TECHNIQUE,
)

# Pairs that do not help each other: generated kernels keep values in registers anyway.
APART: frozenset[frozenset[str]] = frozenset(
    {
        frozenset({"operation fusion", "searched fusion"}),
        frozenset({"operation fusion", "in-place memory"}),
        frozenset({"searched fusion", "in-place memory"}),
        frozenset({"searched fusion", "convolution search"}),
    }
)
