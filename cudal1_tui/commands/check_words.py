"""What each check of the referee asks, in plain words."""

CHECKS = {
    # of the task, before there is a candidate
    "deterministic reference": "does the reference agree with itself, run again and on other memory?",
    "float64 truth": "can its answer be computed in float64, to compare with?",
    "impostors": "are zeros, a constant, another input's answer and other weights told from the right answer?",
    # of a candidate
    "build": "can it be imported and constructed, and does it take the reference's weights?",
    "weights as built": "is it right on inputs nobody has seen, call by call, also after a change of one element?",
    "outputs stay": "do earlier answers stay what they were?",
    "same tensors, other values": "is it right when the same tensors hold other values?",
    "other weights": "is it right with other weights?",
    "stream order": "are answers ready where the call returns, not later?",
    "buffers": "does it leave its parameters and buffers as the reference leaves its own?",
    "input domain": "is it right beyond the reference's own inputs too?",
    "gradients": "does it also run with gradients enabled?",
    "timed outputs": "was every answer of every timed call right?",
    "timing": "how was the speedup measured?",
    "profile": "what ran?",
    "roofline": "is it slower than what the device allows?",
    "second measurement": "does a second measurement agree?",
}
