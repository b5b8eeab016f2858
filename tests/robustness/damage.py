"""Damages one kind of file many times, in a process that may crash.

Run as a program: the name of a kind of file in `readers.FILES`, a folder, the largest number of
cases, the seconds after which to stop, and a seed. Prints the number of cases, or the first one
with an error that is not one of graphuq. The last file is in the folder.
"""

import io
import json
import resource
import signal
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

MAX_SECONDS = 60  # of one case; then a signal ends the process
MAX_BYTES = 24 << 30  # of addresses: more is an error of memory
TOKENS = [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"nan", b"1e999", b"-1", b"\n",
          b'"', b",", b"{", b"[", b"null", b"1e-320", b"99999999999999999999", b"\xff\xfe",
          b"<", b"'", b"\\", b"\r"]  # fmt: skip
VALUES = [None, True, -1, 0, 1e308, float("nan"), 10**30, "", "x", "\0", [], {}, [[]], {"a": 1}]


def damaged(content, name, rng):
    """Return content with random damage; half of the archives and JSON stay well-formed."""
    if rng.uniform() < 0.5:
        if name.endswith(".npz"):
            return _in_archive(content, rng)
        if name.endswith((".json", ".jsonl", ".geojson")):
            return _in_json(content, rng)
    return _bytes(content, rng)


def _bytes(content, rng):
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(content) + 1))
        length = int(rng.integers(1, 65))
        kind = rng.integers(7)
        if kind == 0:
            new = rng.bytes(int(rng.integers(1, 13)))
            content = content[:at] + new + content[at + len(new) :]
        elif kind == 1:
            content = content[:at] + rng.bytes(int(rng.integers(1, 13))) + content[at:]
        elif kind == 2:
            content = content[:at] + content[at + length :]
        elif kind == 3:
            content = content[:at] + content[at : at + length] * 3 + content[at + length :]
        elif kind == 4:
            token = TOKENS[rng.integers(len(TOKENS))]
            content = content[:at] + token + content[at + len(token) :]
        elif kind == 5 and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << rng.integers(8)]) + content[at + 1 :]
        elif rng.uniform() < 0.2:
            content = content[:at]
    return content


def _in_archive(content, rng):
    """Damage one member of a zip file, whose checksums are then right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[rng.integers(len(members))]
    members[name] = _bytes(members[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def _in_json(content, rng):
    """Replace a random value in one line, or in the whole file if it is one value."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        lines = [json.loads(line) for line in content.splitlines()]
    places = [(lines, k) for k in range(len(lines))]
    for holder, key in places:
        value = holder[key]
        keys = value if isinstance(value, dict) else range(len(value) if _is(value, list) else 0)
        places.extend((value, k) for k in list(keys))
    holder, key = places[rng.integers(len(places))]
    holder[key] = VALUES[rng.integers(len(VALUES))]
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def _is(value, kind):
    return isinstance(value, kind)


def main(name, folder, n_cases, seconds, seed):
    from graphuq.errors import MAX_MESSAGE, GraphuqError
    from robustness.readers import FILES

    make, read = FILES[name]
    path = Path(folder) / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.unlink(missing_ok=True)
    make(path)
    sound = path.read_bytes()
    warnings.simplefilter("ignore")
    read(path)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    end, refused, case = time.monotonic() + seconds, 0, 0
    while case < n_cases and time.monotonic() < end:
        path.write_bytes(damaged(sound, name, np.random.default_rng([seed, case])))
        signal.alarm(MAX_SECONDS)
        try:
            read(path)
        except GraphuqError as error:
            refused += 1
            if len(str(error)) > MAX_MESSAGE:
                return f"case {case}: a message of {len(str(error))} characters"
        except (OSError, MemoryError):
            refused += 1
        except Exception as error:
            import traceback

            traceback.print_exc()
            return f"case {case}: {type(error).__name__}: {error}"
        signal.alarm(0)
        case += 1
    sys.stdout.write(f"{case} cases, {refused} refused\n")
    return 0


if __name__ == "__main__":
    name, folder, n_cases, seconds, seed = sys.argv[1:]
    sys.exit(main(name, folder, int(n_cases), float(seconds), int(seed)))
