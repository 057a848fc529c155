"""Lists of files that do not follow a rule yet, with a number for each that only shrinks."""

import argparse
import sys


def read(path):
    rows = (line.rsplit(None, 1) for line in path.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {name: int(number) for name, number in rows}


def write(path, header, numbers):
    rows = (f"{name} {number}\n" for name, number in sorted(numbers.items()) if number)
    path.write_text(header + "".join(rows), "utf-8")


def lower(listed, now):
    """Lower each number to what is counted now; never raise one."""
    return {name: min(number, now.get(name, 0)) for name, number in listed.items()}


def recount(listed, now):
    """Return the numbers of now, for files that moved; refuse a sum that grew."""
    if sum(now.values()) > sum(listed.values()):
        sys.exit(f"{sum(now.values())} now, the list allows {sum(listed.values())}: mend the new ones first")
    return now


def too_high(now, listed):
    """Return the files that break the rule more often than their number allows."""
    return {
        name: f"{number}, allowed {listed.get(name, 0)}"
        for name, number in now.items()
        if number > listed.get(name, 0)
    }


def to_lower(now, listed):
    """Return the numbers that are higher than reality."""
    return {
        name: f"{number}, lower it to {now.get(name, 0)}"
        for name, number in listed.items()
        if number > now.get(name, 0)
    }


def parser(doc):
    """Return the parser of the command of a rule."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="*", help="files or folders, from the root of the project; all if none"
    )
    parser.add_argument(
        "--update", action="store_true", help="lower the numbers of the list; never raises one"
    )
    parser.add_argument("--moved", action="store_true", help="write the list again if the sum did not grow")
    return parser


def rewrite(options, path, header, now):
    """Write a list again, as --update or --moved asks."""
    if options.update:
        write(path, header, lower(read(path), now))
    if options.moved:
        write(path, header, recount(read(path), now))
    return options.update or options.moved
