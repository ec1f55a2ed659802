"""Every reader against damaged files: truncated, bits flipped, spliced, numbers replaced.

    python benchmarks/fuzz.py [--tries 10000] [--seed 0] [--quick]

Each try damages one file of a small intact case and reads it, then gives it to the command. It must be read, or
refused by one sentence: no other exception, no warning, exit code 2, nothing else on stderr, no folder of results, no
more than 10 s, no more than 2 GB (the limit of the process's memory; to meet it is wrong). The tries run in a worker,
so that a crash or a hang is seen, and told with the number that repeats it (--only K).
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_subjects import Subject, subjects

from logishape import cli
from logishape.core.errors import LogishapeError

MOST_SECONDS, MOST_BYTES = 10, 2 << 30
NUMBERS = [b"0", b"-1", b"nan", b"inf", b"1e308", b"99999999999999999999", b"4294967295", b"65535", b"1e-320"]
WORDS = [b"\xff" * 4, b"\0" * 8, b"\x7f\xff\xff\xff", b"../../etc/passwd", b"[" * 20000, b"\n", b'"', b"\r\n\r\n"]


def damage(content: bytes, other: bytes, random: np.random.Generator) -> bytes:  # noqa: C901 - a list of injuries
    """One or several injuries: cut, flipped bits, a run of another file, odd numbers and words, doubled pieces."""
    for _ in range(int(random.integers(1, 4))):
        at = int(
            random.integers(0, min(len(content), 600) if random.random() < 0.6 else len(content)) if content else 0
        )
        kind = random.choice(["cut", "bits", "bits", "splice", "number", "word", "double", "drop"])
        if kind == "cut":
            content = content[:at]
        elif kind == "bits" and content:
            flipped = bytearray(content)
            for place in np.minimum(at + random.integers(0, 64, random.integers(1, 5)), len(content) - 1):
                flipped[place] ^= 1 << int(random.integers(8))
            content = bytes(flipped)
        elif kind == "splice":
            begin = int(random.integers(0, len(other)))
            content = content[:at] + other[begin : begin + int(random.integers(1, 2000))] + content[at:]
        elif kind == "number":
            found = list(re.finditer(rb"-?\d[\d.eE+-]*", content[:4096]))
            if found:
                chosen = found[int(random.integers(len(found)))]
                content = content[: chosen.start()] + NUMBERS[random.integers(len(NUMBERS))] + content[chosen.end() :]
        elif kind == "word":
            word = WORDS[random.integers(len(WORDS))]
            keep = at + (len(word) if random.random() < 0.5 else 0)
            content = content[:at] + word + content[keep:]
        elif kind == "double":
            content = content[:at] + content[at : at + int(random.integers(1, 500))] + content[at:]
        elif kind == "drop":
            content = content[:at] + content[at + int(random.integers(1, 50)) :]
    return content


def attempt(number: int, seed: int, all_subjects: dict[str, Subject], place: Path) -> tuple[str, str, float]:
    """One try: the subject's name; "read", "refused" or what went wrong; and its seconds."""
    random = np.random.default_rng([seed, number])
    names = list(all_subjects)
    name = names[number % len(names)]
    subject = all_subjects[name]
    other = all_subjects[names[random.integers(len(names))]]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    files = dict(subject.files)
    all_alike = name.startswith("dicom") and random.random() < 0.5
    victims = subject.damaged if all_alike else (subject.damaged[random.integers(len(subject.damaged))],)
    state = random.bit_generator.state
    for victim in victims:
        random.bit_generator.state = state  # the same injury to all slices
        files[victim] = damage(files[victim], next(iter(other.files.values())), random)
    for key, content in files.items():
        (place / key).write_bytes(content)
    began = time.perf_counter()
    outcome = _outcome(subject, place)
    if outcome in ("read", "refused") and subject.words:
        wrong = _command_outcome([word.replace("{}", str(place)) for word in subject.words], place.parent / "out")
        outcome = wrong or outcome
    return name, outcome, time.perf_counter() - began


def _outcome(subject: Subject, place: Path) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            subject.read(place)
    except LogishapeError as error:
        text = str(error)
        if isinstance(error.__cause__, MemoryError):
            return f"more memory than {MOST_BYTES >> 30} GB: {text}"
        is_sentence = text.endswith(".") and text.isprintable() and not re.search(r"[.!?] [A-Z]", text)
        return "refused" if is_sentence and len(text) < 1000 else f"not one sentence: {text[:300]!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:300]}"
    return "read"


def _command_outcome(words: list[str], out: Path) -> str:
    """What is wrong with how the command ended and what it told; nothing where it is refused in one sentence.

    It is refused even where the damage is harmless, since the cases are too coarse; but masks can be compared.
    """
    sys.argv = ["logishape", *words]
    with tempfile.TemporaryFile() as told, _told_to(told.fileno()):
        try:
            cli.main()
            code: Any = None
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            return f"the command raises {type(error).__name__}: {str(error)[:300]}"
        sys.stderr.flush()
        told.seek(0)
        lines = [line for line in told.read().decode(errors="replace").splitlines() if line[:2] != "  "]
    if out.exists():
        return "the command leaves a folder of results"
    if code == 0 and words[0] == "evaluate" and not lines:
        return ""
    is_told = code == 2 and len(lines) == 1 and lines[0].startswith("logishape: ")
    return "" if is_told else f"the command ends with {code} and tells {lines[:4]}"


@contextlib.contextmanager
def _told_to(file: int) -> Iterator[None]:
    """What is written to stderr goes to a file, also what libraries below Python write; stdout goes nowhere."""
    sys.stderr.flush()
    kept, stream = os.dup(2), sys.stderr
    os.dup2(file, 2)
    try:
        with os.fdopen(os.dup(2), "w") as sys.stderr, contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.stderr = stream
        os.dup2(kept, 2)
        os.close(kept)


def _work(numbers: list[int], seed: int, queue: Any) -> None:
    most = _address_space() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    cases = subjects()
    with tempfile.TemporaryDirectory() as place:
        for number in numbers:
            queue.put(("begin", number))
            signal.alarm(MOST_SECONDS)  # ends this process
            found = attempt(number, seed, cases, Path(place) / "case")
            signal.alarm(0)
            queue.put(("end", number, *found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def _address_space() -> int:
    """Bytes of address space that the libraries themselves have taken."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def run(numbers: list[int], seed: int) -> list[tuple]:
    """All tries, in a process of their own that is started again after a crash or a hang."""
    context, rows, left = multiprocessing.get_context("spawn"), [], list(numbers)
    while left:
        queue = context.Queue()
        worker = context.Process(target=_work, args=(left, seed, queue))
        worker.start()
        now = None
        while worker.is_alive() or not queue.empty():
            try:
                message = queue.get(timeout=0.2)
            except Exception:  # nothing came yet
                continue
            now = message[1] if message[0] == "begin" else None
            if message[0] == "end":
                rows.append(message[1:])
                if len(rows) % 1000 == 0:
                    print(f"  {len(rows)} tries", file=sys.stderr, flush=True)
        worker.join()
        if now is not None:
            rows.append((now, "?", f"the process ended with code {worker.exitcode}", 0.0, 0))
        elif worker.exitcode:
            raise RuntimeError(worker.exitcode)
        done = {row[0] for row in rows}
        left = [number for number in left if number not in done]
    return rows


def main() -> None:
    """Prints a table by kind of file, and every try that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    rows = run(chosen.only or list(range(300 if chosen.quick else chosen.tries)), chosen.seed)
    counts: dict[str, Counter] = {}
    for _, name, outcome, _, _ in rows:
        counts.setdefault(name, Counter())[outcome if outcome in ("read", "refused") else "wrong"] += 1
    print(f"{'file':18}{'tries':>7}{'read':>7}{'refused':>9}{'wrong':>7}{'slowest':>9}")
    for name, count in counts.items():
        slowest = max(row[3] for row in rows if row[1] == name)
        print(f"{name:18}{count.total():7}{count['read']:7}{count['refused']:9}{count['wrong']:7}{slowest:7.2f} s")
    wrong = [row for row in rows if row[2] not in ("read", "refused")]
    for row in wrong[:40]:
        print(f"try {row[0]} ({row[1]}): {row[2]}")
    peak = max(row[4] for row in rows) / 1024
    print(f"{len(rows)} tries, {len(wrong)} wrong, slowest {max(row[3] for row in rows):.2f} s, peak {peak:.0f} MB")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
