"""Searches for files that harm a reader, guided by the lines of graphuq that they run.

After ``pip install atheris`` (Linux, Python 3.11 to 3.14), from the folder of the repository:
``python tests/robustness/fuzz_by_coverage.py FOLDER SECONDS [KIND …]``. A kind is a name in
`readers.FILES` or a pattern such as ``*.csv``; each one is read for some seconds of CPU time. The
folder keeps the inputs that ran something new, with which a later search goes on; in ``faults``
what harmed a reader; and a line of figures for each half of a search.

A reader may refuse a file by an error of graphuq, of the system, or of memory. Any other error is
a fault; so is a case of a minute of CPU time, of 4 GB, or one that ends the process. The exit code
is 1 if there were faults.
"""

import contextlib
import fnmatch
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve()
SOURCES = HERE.parents[2] / "src"
MAX_SECONDS, MAX_WAIT = 60, 1200  # of one case: CPU time, and time that may pass
MAX_MEGABYTES = 4096  # of the process
MAX_BYTES = 24 << 30  # of addresses: more is an error of memory, which is a refusal
FAULT = "FAULT"  # begins a line of the process that reads


def search(folder, seconds, kinds):
    """Read each kind for some seconds of CPU time, and return the number of faults."""
    n_faults = 0
    for kind in kinds:
        for half in (1, 2):
            spent, executed, covered, faults = 0.0, 0, 0, []
            while spent < 0.95 * seconds / 2:
                found = _search_once(folder, kind, seconds / 2 - spent)
                spent, executed = spent + found["spent"], executed + found["executed"]
                covered, faults = max(covered, found["covered"]), faults + found["faults"]
            line = {"kind": kind, "half": half, "cpu_minutes": round(spent / 60, 2),
                    "executed": executed, "covered": covered, "faults": faults}  # fmt: skip
            _say(json.dumps(line))
            with open(folder / "figures.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            n_faults += len(faults)
    return n_faults


def _search_once(folder, kind, seconds):
    """Start a process that reads one kind, and return what it found and used."""
    paths = [str(HERE.parents[1]), str(SOURCES), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    before, executed, covered, faults, last = _seconds_of_children(), 0, 0, [], ""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as fast:
        words = [sys.executable, str(HERE), "--read", str(folder), kind, f"{seconds + 1:.0f}", fast]
        with subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, errors="replace", env=environment
        ) as process:
            for line in process.stderr:
                if line.startswith(FAULT):
                    faults.append(line.strip())
                if counted := re.match(r"#(\d+)\s.* cov: (\d+)", line):
                    executed, covered = int(counted[1]), int(counted[2])
                else:
                    last += line
        if process.returncode:
            if not executed and "seed corpus" not in last:  # it did not begin
                raise SystemExit(f"{kind}: {last[-2000:]}")
            faults.append(f"{FAULT} the process ended with {process.returncode}")
            path = folder / "faults" / f"{Path(kind).name}-{time.time():.0f}"
            shutil.copy(Path(fast) / kind, path)
            Path(f"{path}.txt").write_text(last[-20_000:], encoding="utf-8")
    for line in faults:
        _say(f"{kind}: {line}")
    spent = _seconds_of_children() - before
    return {"spent": spent, "executed": executed, "covered": covered, "faults": faults}


def _say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_for(folder, kind, seconds, fast):
    """Read one kind of file in this process, which ends after some seconds, or crashes."""
    import atheris

    compiled = [
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in SOURCES.glob("graphuq/**/*.py")
        if "njit" in path.read_text(encoding="utf-8")
    ]
    warnings.simplefilter("ignore")
    path = fast / kind
    path.parent.mkdir(exist_ok=True)
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stderr(nothing),
        atheris.instrument_imports(include=["graphuq"], exclude=compiled),
    ):
        from robustness.readers import FILES

        make, read = FILES[kind]
        make(path)
        sound = path.read_bytes()
        read(path)  # imports what is imported late
    import numpy as np

    from graphuq.errors import MAX_MESSAGE, GraphuqError
    from robustness.damage import damaged
    from robustness.written_files import WRITTEN

    corpus, faults = folder / kind, folder / "faults"
    for made in (corpus, faults):
        made.mkdir(parents=True, exist_ok=True)
    (corpus / "sound").write_bytes(sound)
    for number, text in enumerate(WRITTEN.get(path.suffix, ())):
        (corpus / f"written-{number}").write_text(text, encoding="utf-8", newline="")
    known = set()

    def fault(what, content):
        if what not in known:
            known.add(what)
            name = f"{path.name}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
            (faults / name).write_bytes(content)
            (faults / f"{name}.txt").write_text(f"{what}\n{traceback.format_exc()}")
            sys.stderr.write(f"{FAULT} {name} {what}\n")

    def one(content):
        path.write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)  # ends the process, also inside of C
        try:
            read(path)
        except GraphuqError as error:
            if len(str(error)) > MAX_MESSAGE:
                fault(f"a message of {len(str(error))} characters", content)
        except (OSError, MemoryError):
            pass
        except Exception as error:
            places = traceback.extract_tb(error.__traceback__)
            ours = [place for place in places if str(SOURCES) in place.filename] or places
            fault(f"{type(error).__name__} {ours[-1].filename}:{ours[-1].lineno}", content)

    def mutated(content, max_size, seed):
        rng = np.random.default_rng(seed)
        if rng.uniform() < 0.5:
            # HDF5 may crash on a damaged file, here, too: this damage begins with the sound one.
            start = sound if kind.endswith(".h5ad") else content
            with contextlib.suppress(Exception):  # what is no archive or JSON any longer
                return damaged(start, kind, rng)[:max_size]
        return atheris.Mutate(content, max_size)

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    options = {"max_total_time": seconds, "timeout": MAX_WAIT, "rss_limit_mb": MAX_MEGABYTES,
               "max_len": max(4096, 4 * len(sound)), "artifact_prefix": f"{fast}/",
               "seed": int(time.time())}  # fmt: skip
    words = [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
    atheris.Setup(words, one, custom_mutator=mutated)
    atheris.Fuzz()


def main(words):
    if words and words[0] == "--read":
        return read_for(Path(words[1]), words[2], int(words[3]), Path(words[4]))
    from robustness.readers import FILES

    folder, seconds, *patterns = words
    kinds = [n for n in FILES if any(fnmatch.fnmatch(n, p) for p in patterns or ["*"])]
    return 1 if search(Path(folder).resolve(), float(seconds), kinds) else 0


if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[1]), str(SOURCES)]
    sys.exit(main(sys.argv[1:]))
