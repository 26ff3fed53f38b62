"""plain_yaml.py - reads the part of YAML that our descriptions are written in.

The build needs no package besides Python. Known are block maps and lists, flow collections over any number of
lines, plain and double-quoted scalars, and the blocks `|` (lines stay) and `>-` (lines are joined). A key that
occurs twice is an error, and so is what a YAML 1.2 reader would understand otherwise.
"""
import json
import re

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
WORDS = {"null": None, "true": True, "false": False}
KEY = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s"\'\[\]{}#&*!|>%@`,-][^\s:]*):(?: +|$)')


class Defect(Exception):
    """`path:line: what is wrong`."""


def scalar(text):
    """A plain scalar's value."""
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return WORDS.get(text, text)


class Flow:
    """A flow collection or a quoted scalar, in a text that may have many lines."""

    def __init__(self, text, fail):
        self.text, self.at, self.fail = text, 0, fail

    def skip(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self):
        self.skip()
        if self.at == len(self.text):
            self.fail("the text ends inside of a collection")
        return self.text[self.at]

    def take(self, expected):
        if self.peek() != expected:
            self.fail("expected '%s', found '%s'" % (expected, self.text[self.at:self.at + 20]))
        self.at += 1

    def quoted(self):
        found = re.compile(r'"(?:[^"\\]|\\.)*"').match(self.text, self.at)
        if not found:
            self.fail("a quotation mark is not closed")
        self.at = found.end()
        return json.loads(found.group())

    def plain(self, is_key):
        end = re.compile(r":(?=\s|$)|,|[\[\]{}]").search(self.text, self.at)
        stop = end.start() if end else len(self.text)
        if not is_key and end and end.group() == ":":
            self.fail("': ' inside of a scalar: quote it")
        word = " ".join(self.text[self.at:stop].split())
        self.at = stop
        return word

    def list(self):
        out = []
        self.take("[")
        while self.peek() != "]":
            out.append(self.value())
            if self.peek() != "]":
                self.take(",")
        self.take("]")
        return out

    def map(self):
        out = {}
        self.take("{")
        while self.peek() != "}":
            key = self.quoted() if self.peek() == '"' else self.plain(True)
            if key in out:
                self.fail("'%s' occurs twice" % key)
            self.take(":")
            out[key] = self.value()
            if self.peek() != "}":
                self.take(",")
        self.take("}")
        return out

    def value(self):
        kinds = {"[": self.list, "{": self.map, '"': self.quoted}
        return kinds[self.peek()]() if self.peek() in kinds else scalar(self.plain(False))

    def whole(self):
        value = self.value()
        self.skip()
        if self.at != len(self.text):
            self.fail("expected the end of the value, found '%s'" % self.text[self.at:self.at + 20])
        return value


class Blocks:
    """The lines of a file, read from the first to the last."""

    def __init__(self, path, text):
        self.path, self.lines, self.at = path, text.split("\n"), 0

    def fail(self, what):
        raise Defect("%s:%d: %s" % (self.path, self.at + 1, what))

    def indent(self):
        """Of the next line that says something; -1 at the end."""
        while self.at < len(self.lines) and re.match(r"\s*(#|$)", self.lines[self.at]):
            self.at += 1
        return len(self.lines[self.at]) - len(self.lines[self.at].lstrip(" ")) if self.at < len(self.lines) else -1

    def deeper(self, indent):
        """The lines that follow and are indented more than this, empty ones among them."""
        found = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self.lines[self.at].startswith(" " * (indent + 1))):
            found.append(self.lines[self.at])
            self.at += 1
        return found

    def block_text(self, indent, style):
        lines = self.deeper(indent)
        width = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
        lines = [line[width:] for line in lines]
        return "\n".join(lines).rstrip("\n") + "\n" if style == "|" else " ".join(line for line in lines if line)

    def inline(self, indent, rest):
        """What begins on the line of its key or dash."""
        if rest in ("|", ">-"):
            return self.block_text(indent, rest)
        if rest[0] in "[{\"":
            return Flow("\n".join([rest] + self.deeper(indent)), self.fail).whole()
        line_at = self.at - 1
        text = " ".join([rest] + [line.strip() for line in self.deeper(indent) if line.strip()])
        if re.search(r": | #|:$", text) or text[0] in "&*!|>%@`'":
            self.at = line_at
            self.fail("quote this, or begin a block with >-: " + text)
        return scalar(text)

    def value(self, indent, rest):
        if rest:
            return self.inline(indent, rest)
        below = self.indent()
        if below <= indent:
            return None
        if self.lines[self.at].strip()[0] in "[{":
            return Flow("\n".join(self.deeper(indent)), self.fail).whole()
        return self.list(below) if self.lines[self.at].strip().startswith("- ") else self.map(below)

    def list(self, indent):
        out = []
        while self.indent() == indent and self.lines[self.at].startswith("- ", indent):
            rest = self.lines[self.at][indent + 2:].strip()
            self.at += 1
            out.append(self.inline(indent, rest))
        return out

    def map(self, indent):
        out = {}
        while self.indent() == indent:
            line = self.lines[self.at].strip()
            found = KEY.match(line)
            if not found:
                self.fail("expected KEY: VALUE, found '%s'" % line[:40])
            key = json.loads(found.group(1)) if line[0] == '"' else found.group(1)
            if key in out:
                self.fail("'%s' occurs twice" % key)
            self.at += 1
            out[key] = self.value(indent, line[found.end():].strip())
        if self.indent() > indent:
            self.fail("this line is indented more than those above it")
        return out


def read(path, text):
    """The map that a file holds."""
    blocks = Blocks(path, text)
    value = blocks.map(max(blocks.indent(), 0))
    if blocks.indent() != -1:
        blocks.fail("this line is indented less than the first one")
    return value
