"""Many mutants in one build: each stands in the code behind a question, and a number in the
environment says which of them is there.

cargo-mutants builds the crate for each mutant, which takes longer than the tests do. Here

    a + b        becomes    (if crate::mutant_is(7) { a - b } else { a + b })

and so on, so that a crate is built a few times and then only its tests are run. What cannot stand
like that (in a constant, or of a type that does not compile) is left to cargo-mutants: `test`
returns those that it tried.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import time

import tree_sitter
import tree_sitter_rust

RUST = tree_sitter.Language(tree_sitter_rust.language())
NOT_EXHAUSTIVE = "E0004"
VARIABLE = "TAPSTONE_MUTANT"
# Tests may use so much processor time, in seconds, or ten times what they used unchanged.
LEAST_SECONDS = 4
# One test may take so long, waiting and all, or ten times what the slowest one takes unchanged.
LEAST_SECONDS_OF_ONE = 30
# Without a mutant.
MOST_SECONDS = 900
# So many of the tests that noticed others of the same file are run first.
MOST_FIRST = 8
MOST_BYTES = 8 << 30
QUESTION = f"""
/// Whether this mutant was chosen.
#[doc(hidden)]
pub fn mutant_is(number: u32) -> bool {{
    extern crate std;
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let chosen = || std::env::var("{VARIABLE}").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    *CHOSEN.get_or_init(chosen) == number
}}
"""


class Source:
    """A file, and where its mutants go into it."""

    def __init__(self, path):
        self.text = path.read_bytes()
        self.lines = [0]
        for line in self.text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.tree = tree_sitter.Parser(RUST).parse(self.text)

    def offset(self, at):
        """The byte at a line and a column, both from 1, the column in characters."""
        start = self.lines[at["line"] - 1]
        line = self.text[start : self.lines[at["line"]]].decode()
        return start + len(line[: at["column"] - 1].encode())

    def key(self, mutant):
        return mutant["name"], hashlib.sha256(self.text).hexdigest()[:16]

    def constant(self, node):
        """The modifiers of the constant function around a node; `True` in another constant."""
        while node:
            if node.type in ("const_item", "static_item", "array_type", "const_block"):
                return True
            if node.type == "function_item":
                modifiers = [it for it in node.children if it.type == "function_modifiers"]
                if modifiers and b"const" in modifiers[0].text.split():
                    return node
                return None
            node = node.parent
        return None

    def edit(self, mutant):
        """Where a mutant goes: the range that it changes, of which kind, and the changed text."""
        start, end = (self.offset(mutant["span"][it]) for it in ("start", "end"))
        node = self.tree.root_node.descendant_for_byte_range(start, end - 1)
        new = mutant["replacement"].encode()
        kind = mutant["genre"]
        if kind == "FnValue":
            # What is returned has one type.
            if "impl " in mutant["function"]["return_type"]:
                return None
            return node, (start, start, "return", new)
        if kind in ("BinaryOperator", "UnaryOperator"):
            whole = node.parent
            # With another operator a chain is read in another order.
            while whole and whole.parent and whole.parent.type == "binary_expression":
                whole = whole.parent
            if whole is None or whole.type not in (
                "binary_expression", "compound_assignment_expr", "unary_expression",
            ) or (whole.parent and whole.parent.type == "let_chain" and new == b"||"):
                return None
        elif kind == "StructField":
            whole = node
            while whole and whole.type != "struct_expression":
                whole = whole.parent
            if whole is None:
                return None
            rest = self.text[end : whole.end_byte].lstrip()
            if rest.startswith(b","):
                end = self.text.index(b",", end) + 1
        elif kind == "MatchArmGuard":
            return node, (start, end, "guard", new)
        elif kind == "MatchArm":
            arm = node
            while arm and not (arm.type == "match_arm" and arm.start_byte <= start):
                arm = arm.parent
            if arm is None or arm.start_byte != start and arm.child(0).type != "attribute_item":
                return None
            pattern = next(it for it in arm.children if it.type == "match_pattern")
            guard = pattern.child_by_field_name("condition")
            if guard:
                if guard.type in ("let_condition", "let_chain"):
                    return None
                return node, (guard.start_byte, guard.end_byte, "arm", b"")
            return node, (pattern.end_byte, pattern.end_byte, "new guard", b"")
        else:
            return None
        first, last = whole.start_byte, whole.end_byte
        changed = self.text[first:start] + new + self.text[end:last]
        return whole, (first, last, "instead", changed)


def render(text, edits, first, last):
    """The text of a range with its mutants. `edits`: by range, widest first."""
    out = b""
    at = first
    index = 0
    while index < len(edits):
        (start, end), entries = edits[index]
        inner = []
        index += 1
        while index < len(edits) and edits[index][0][0] < end:
            inner.append(edits[index])
            index += 1
        out += text[at:start] + wrap(render(text, inner, start, end), entries)
        at = end
    return out + text[at:last]


def wrap(whole, entries):
    """A range with the mutants of just this range around it."""
    asked = b"crate::mutant_is(%d)"
    order = {"instead": 0, "guard": 1, "arm": 2, "new guard": 2, "return": 3}
    for kind in sorted({kind for _, kind, _ in entries}, key=order.get):
        of_kind = [(number, new) for number, it, new in entries if it == kind]
        if kind == "instead":
            changed = b"".join(
                b"/*{%d*/if %s { %s } else /*}*/" % (number, asked % number, new)
                for number, new in of_kind
            )
            whole = b"(%s{ %s })" % (changed, whole)
        elif kind == "guard":
            for number, new in of_kind:
                chosen = asked % number
                joined = b"%s || " % chosen if new == b"true" else b"!%s && " % chosen
                whole = b"(%s(%s))" % (joined, whole)
        elif kind == "arm":
            whole = b"(!%s && (%s))" % (asked % of_kind[0][0], whole)
        elif kind == "new guard":
            whole += b" if !%s " % (asked % of_kind[0][0])
        else:
            changed = b"".join(
                b"/*{%d*/if %s { return %s; }/*}*/ " % (number, asked % number, new)
                for number, new in of_kind
            )
            whole = changed + whole
    numbers = b" ".join(b"%d" % number for number, _, _ in entries)
    return b"/*{%s*/%s/*}*/" % (numbers, whole)


def guarded_arms(text, start):
    """The numbers of the mutants that are guards of the arms of a match which begins there."""
    tree = tree_sitter.Parser(RUST).parse(text)
    node = tree.root_node.descendant_for_byte_range(start, start)
    while node and node.type != "match_expression":
        node = node.parent
    body = node.child_by_field_name("body").text if node else b""
    return [int(it) for it in re.findall(rb"!crate::mutant_is\((\d+)\)", body)]


def blamed(text, start):
    """The numbers of the mutants in the smallest marked part that holds a byte."""
    opened = []
    for mark in re.finditer(rb"/\*\{([0-9 ]+)\*/|/\*\}\*/", text):
        if mark[1]:
            if mark.start() > start:
                break
            opened.append(mark)
        else:
            if mark.end() > start:
                break
            opened.pop()
    return [int(it) for it in opened[-1][1].split()] if opened else []


def watch(process, most_of_one):
    """Reads what a test program says until a test fails or takes too long; `None` where its exit
    code tells how it went. Which tests ended, after how many seconds each."""
    tests = {}
    said = b""
    began = time.monotonic()
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    while poll.poll(1000 * most_of_one):
        new = os.read(process.stdout.fileno(), 1 << 16)
        if not new:
            process.wait()
            return None, tests
        *lines, said = (said + new).split(b"\n")
        for line in lines:
            ended = re.fullmatch(rb"test (\S+).* \.\.\. .*?(ok|FAILED|ignored.*)", line)
            if ended and ended[2][:1] != b"i":
                now = time.monotonic()
                tests[ended[1].decode()] = now - began
                began = now
                if ended[2] == b"FAILED":
                    return "caught", tests
    return "timed out", tests


class AllAtOnce:
    """The mutants of one crate in a copy of the workspace."""

    def __init__(self, root, package, folder, tree, build):
        self.root = root
        self.package = package
        self.folder = folder
        self.tree = tree
        self.build = build
        self.programs = {}
        # Names of mutants that do not stand beside the others, with what their files were.
        self.apart_file = tree.parent / f"{package}-apart.json"
        self.apart = set()
        if self.apart_file.exists():
            self.apart = {tuple(it) for it in json.loads(self.apart_file.read_text())}

    def copy(self):
        """The workspace as it is; a file that is the same stays, so that it is not built again."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, check=True,
        ).stdout.decode().split("\0")
        files = {name for name in listed if name and (self.root / name).is_file()}
        for name in files:
            here, there = self.root / name, self.tree / name
            if not there.exists() or here.read_bytes() != there.read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        for path in [it for it in (self.tree / "crates").rglob("*.rs") if it.is_file()]:
            if str(path.relative_to(self.tree)) not in files:
                path.unlink()

    def prepare(self, mutants, targets):
        """Builds the test programs; the mutants in them, by number."""
        self.copy()
        placed = {}
        sources = {}
        by_constant = {}
        for number, mutant in enumerate(mutants, 1):
            source = sources.setdefault(mutant["file"], Source(self.root / mutant["file"]))
            found = source.edit(mutant)
            around = found and source.constant(found[0])
            if found is None or around is True or source.key(mutant) in self.apart:
                continue
            if around:
                name = around.child_by_field_name("name").text.decode()
                by_constant.setdefault(name, []).append(number)
            placed[number] = (mutant["file"], *found[1], around)
        self.written = set(sources)
        while True:
            self.write(placed, sources)
            wrong = self.compile(targets, by_constant)
            if not wrong:
                return {number: mutants[number - 1] for number in placed}
            print(f"{len(wrong)} mutants do not stand beside the others", flush=True)
            for number in wrong & placed.keys():
                mutant = mutants[number - 1]
                self.apart.add(sources[mutant["file"]].key(mutant))
            self.apart_file.write_text(json.dumps(sorted(self.apart)))
            placed = {number: it for number, it in placed.items() if number not in wrong}

    def write(self, placed, sources):
        for file, source in sources.items():
            edits = {}
            constant = set()
            for number, (of, start, end, kind, new, around) in placed.items():
                if of == file:
                    edits.setdefault((start, end), []).append((number, kind, new))
                    if around:
                        modifiers = next(
                            it for it in around.children if it.type == "function_modifiers"
                        )
                        word = next(it for it in modifiers.children if it.type == "const")
                        constant.add((word.start_byte, word.end_byte))
            text = bytearray(source.text)
            for start, end in constant:
                text[start:end] = b" " * (end - start)
            ordered = sorted(edits.items(), key=lambda it: (it[0][0], -it[0][1]))
            self.replace(file, render(bytes(text), ordered, 0, len(text)))
        front = f"{self.folder}/src/lib.rs"
        text = (self.tree if front in sources else self.root) / front
        self.replace(front, text.read_bytes() + QUESTION.encode())

    def replace(self, file, text):
        path = self.tree / file
        if path.read_bytes() != text:
            path.write_bytes(text)

    def compile(self, targets, by_constant):
        """Builds; the numbers of the mutants because of which it cannot be done."""
        done = subprocess.run(
            ["cargo", "test", "--locked", "--offline", "--quiet", "--profile", "mutants", "-j1",
             "-p", self.package, *targets, "--no-run", "--message-format=json"],
            cwd=self.tree, env=dict(os.environ, CARGO_TARGET_DIR=str(self.build)),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )
        wrong = set()
        said = []
        for line in done.stdout.splitlines():
            message = json.loads(line)
            if message["reason"] == "compiler-artifact" and message.get("executable"):
                if message["profile"]["test"]:
                    target = message["target"]
                    name = "lib" if "lib" in target["kind"] else target["name"]
                    self.programs[name] = message["executable"]
            if message["reason"] != "compiler-message" or message["message"]["level"] != "error":
                continue
            error = message["message"]
            said.append(error["rendered"])
            for name in re.findall(r"(?:function|method) `([^`]*)`", error["message"]):
                if "const" in error["message"]:
                    bare = re.sub(r"<.*>", "", name).split("::")[-1]
                    wrong.update(by_constant.get(bare, []))
            for span in sorted(error["spans"], key=lambda it: not it["is_primary"]):
                path = self.tree / span["file_name"]
                if not path.exists() or span["file_name"] not in self.written:
                    continue
                text = path.read_bytes()
                numbers = blamed(text, span["byte_start"])
                if (error["code"] or {}).get("code") == NOT_EXHAUSTIVE:
                    numbers = guarded_arms(text, span["byte_start"])
                if numbers:
                    wrong.update(numbers)
                    break
        if done.returncode != 0 and not wrong:
            raise RuntimeError("the crate is not built:\n" + "\n".join(said[:5]))
        return wrong

    def run(self, program, number, words, seconds, most_of_one=MOST_SECONDS):
        """Whether a test program passes: `caught`, `survived` or `timed out`; and which tests ended,
        after how many seconds each, the one that failed last. It is ended then.

        `seconds`: of the processor; `most_of_one`: for one test, waiting and all.
        """
        limits = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: MOST_BYTES}

        def limit():
            for which, most in limits.items():
                resource.setrlimit(which, (most, most))

        manifest = self.tree / self.folder
        environment = dict(
            os.environ, CARGO_MANIFEST_DIR=str(manifest), RUST_BACKTRACE="0",
            PROPTEST_DISABLE_FAILURE_PERSISTENCE="1", PROPTEST_MAX_SHRINK_ITERS="0",
            INSTA_UPDATE="no", INSTA_WORKSPACE_ROOT=str(self.tree),
        )
        environment[VARIABLE] = str(number)
        process = subprocess.Popen(
            [program, "--test-threads=1", *words], cwd=manifest, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=limit, start_new_session=True,
        )
        try:
            outcome, tests = watch(process, most_of_one)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.stdout.close()
            process.wait()
        if outcome is None:
            late = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
            outcome = "timed out" if late else "caught" if process.returncode else "survived"
        return outcome, tests

    def measure(self, name):
        """How long a test program's tests take without a mutant, and how long they may with one."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome, tests = self.run(self.programs[name], 0, [], MOST_SECONDS)
        if outcome != "survived":
            raise RuntimeError(f"{self.programs[name]} fails without a mutant: {list(tests)[-1:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.limits[name] = max(LEAST_SECONDS, round(10 * spent))
        self.times[name] = tests
        slowest = max(tests.values(), default=0)
        self.most_of_one[name] = max(LEAST_SECONDS_OF_ONE, 10 * slowest)

    def test(self, mutants, targets):
        """Tries mutants by the likeliest tests first; gives each with its outcome."""
        self.programs = {}
        # By all tests only what those inside of the crate have let pass.
        self.by_inner = targets == ["--lib"]
        numbered = self.prepare(mutants, targets)
        names = [name for name in self.programs if self.by_inner or name != "lib"]
        self.limits = {}
        self.times = {}
        self.most_of_one = {}
        for name in names:
            self.measure(name)
        self.noticed = collections.defaultdict(collections.Counter)
        began = time.monotonic()
        for done, (number, mutant) in enumerate(numbered.items()):
            outcome = self.outcome(number, mutant, names)
            if done % 50 == 49:
                rate = (time.monotonic() - began) / (done + 1)
                print(f"{done + 1} of {len(numbered)}, {rate:.1f} s each", flush=True)
            yield mutant, outcome

    def outcome(self, number, mutant, names):
        module = pathlib.Path(mutant["file"]).relative_to(f"{self.folder}/src").parts[0]
        module = module.removesuffix(".rs")
        for name in sorted(names):
            of_module = [test for test in self.times[name] if test.startswith(f"{module}::")]
            noticed = self.noticed[mutant["file"], name]
            first = [test for test, _ in noticed.most_common(MOST_FIRST)]
            first += of_module if name == "lib" else []
            for tests in [first, []] if first else [[]]:
                outcome = self.run_tests(name, number, noticed, tests)
                if outcome != "survived":
                    return outcome
        return "survived"

    def run_tests(self, name, number, noticed, tests):
        """Tries a mutant by these tests of a program, or by all."""
        words = ["--exact", *tests] if tests else []
        limit = self.limits[name]
        if tests:
            spent = sum(self.times[name].get(test, 0) for test in tests)
            limit = min(limit, max(LEAST_SECONDS, round(10 * spent)))
        most = self.most_of_one[name]
        outcome, ended = self.run(self.programs[name], number, words, limit, most)
        if outcome == "caught" and ended:
            noticed[list(ended)[-1]] += 1
        return outcome
