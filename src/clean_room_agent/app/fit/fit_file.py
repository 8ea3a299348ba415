"""Where what was measured of models is kept: a small file for each model, in the user's state folder."""

import hashlib
import re
from pathlib import Path

from clean_room_agent.app.fit.figures import Fit
from clean_room_agent.errors import ConfigError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.json_values import from_json, to_json
from clean_room_agent.safe_open import open_named
from clean_room_agent.workspace import private_folder, state_folder

VERSION = 1
"""Of the file, and of what is asked: figures of another version are not compared with these."""
AGAIN = "measure the model again: cra models fit --again"


def fits_folder() -> Path:
    """The folder of the files."""
    return state_folder() / "fits"


def fit_path(model: str, digest: str) -> Path:
    """The model's file; of a model whose files have changed, another one."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", model)[:60]
    both = hashlib.sha256(f"{model}\n{digest}".encode()).hexdigest()
    return fits_folder() / f"{readable}-{both[:8]}.json"


def read_fit(model: str, digest: str) -> Fit | None:
    """What was measured of the model, as far as it got; None if nothing was, or by another version of the program.

    Raises:
        ConfigError: the file is broken.
    """
    path = fit_path(model, digest)
    try:
        with open_named(path) as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}", hint="let it be readable") from exc
    try:
        found = from_json(text, Fit)
    except ValueError as exc:
        raise ConfigError(f"{path} is not what `cra models fit` writes: {exc}", hint=AGAIN) from exc
    return found if found.version == VERSION and (found.model, found.digest) == (model, digest) else None


def write_fit(fit: Fit) -> None:
    """Replace the model's file."""
    private_folder(fits_folder(), hint="let XDG_STATE_HOME name a folder that can be written")
    atomic_write(fit_path(fit.model, fit.digest), to_json(fit), private=True)
