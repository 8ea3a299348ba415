"""Compares the logits of a converted adapter with PEFT's, in a separate process: it loads the base twice.

python -m clean_room_agent.training.logits_process BASE.gguf PEFT-FOLDER MERGED.gguf prints, as JSON, the largest difference
of logits between the base with PEFT's adapter and the merged model (`difference`), and between that and the base alone
(`effect`).

transformers reads the files, with its own order of rows, so that an error in `convert` does not cancel out. Both sides
compute in float32 with the same weights: a server differs from PEFT mostly by its rounding of activations, which would
hide an error.
"""

import json
import sys
from pathlib import Path
from typing import Any

from clean_room_agent.training.trl_process import load_base

TOKENS = 32


def prompt_of(vocabulary: int) -> list[int]:
    """The same tokens each time, from all over the vocabulary, so that no tokenizer is needed."""
    return [(7919 * place) % vocabulary for place in range(1, TOKENS + 1)]


def logits_of(model: Any) -> Any:
    """The logits at all positions of the prompt."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([prompt_of(model.config.vocab_size)])).logits[0]


def main() -> None:
    """Prints the figures."""
    from peft import PeftModel

    base, folder, merged = map(Path, sys.argv[1:])
    model = load_base({"base": str(base), "dtype": "float32"})
    before = logits_of(model)
    wanted = logits_of(PeftModel.from_pretrained(model, str(folder)).eval())
    del model
    found = logits_of(load_base({"base": str(merged), "dtype": "float32"}))
    difference, effect = (float((each - wanted).abs().max()) for each in (found, before))
    sys.stdout.write("@" + json.dumps({"difference": difference, "effect": effect}) + "\n")


if __name__ == "__main__":
    main()
