"""Real programs that work with a token in software: a folder with such a token, and servers that
use its key, each with what makes it work. What is not installed raises `Missing`."""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOFTHSM = "/usr/lib/softhsm/libsofthsm2.so"
ENGINE = "/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so"
PIN = "648219"
TOKEN = "watched"
KEY = f"pkcs11:token={TOKEN};object=web;type=private"
HANDSHAKES = 25
SIGNATURES = 30
# A program has this long to be ready.
PATIENCE_SECONDS = 30


class Missing(Exception):
    """Something that is not installed."""


def need(program):
    where = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if where is None:
        raise Missing(program)
    return where


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"error: {command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def until(what, is_so):
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > end:
            sys.exit(f"error: {what} did not come within {PATIENCE_SECONDS} s")
        time.sleep(0.05)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def descendants(root):
    """A process and all that it started, by id."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rsplit(")", 1)[1].split()[1])
    found = {root}
    while more := {it for it, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def users(root, library):
    """Those of them that have a library loaded."""
    has = []
    for process in descendants(root):
        with contextlib.suppress(OSError):
            if library in Path(f"/proc/{process}/maps").read_text():
                has.append(process)
    return has


def visit(port):
    """A new connection, with a handshake of its own and a request."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with context.wrap_socket(plain) as secure:
            secure.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while secure.recv(4096):
                pass


def handshake(port):
    for _ in range(HANDSHAKES):
        visit(port)


class Place:
    """A folder with a token in software, its key, a certificate, and the programs that are built.

    Servers run `under` a command that runs another one, where that is given."""

    def __init__(self, folder, under=()):
        self.folder = Path(folder)
        self.under = under
        self.environment = os.environ | {
            "SOFTHSM2_CONF": str(self.folder / "softhsm2.conf"),
            "PIN": PIN,
            "LC_ALL": "C.UTF-8",
        }
        (self.folder / "tokens").mkdir()
        (self.folder / "softhsm2.conf").write_text(
            f"directories.tokendir = {self.folder}/tokens\nlog.level = ERROR\n"
        )
        self.certificate = self.folder / "web.pem"
        key = self.folder / "key.pem"
        run("softhsm2-util", "--init-token", "--free", "--label", TOKEN, "--pin", PIN, "--so-pin",
            PIN, env=self.environment)
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=watched",
            "-keyout", key, "-out", self.certificate)
        run("softhsm2-util", "--import", key, "--token", TOKEN, "--label", "web", "--id", "01",
            "--pin", PIN, env=self.environment)
        der = self.folder / "web.der"
        run("openssl", "x509", "-in", self.certificate, "-outform", "DER", "-out", der)
        run("pkcs11-tool", "--module", SOFTHSM, "--token-label", TOKEN, "--login", "--pin", "env:PIN",
            "--write-object", der, "--type", "cert", "--id", "01", "--label", "web",
            env=self.environment)
        key.unlink()

    @contextlib.contextmanager
    def running(self, *command, **environment):
        """A program, which is ended with all that it has started."""
        process = subprocess.Popen(
            [str(word) for word in command],
            env=self.environment | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            stop(process)

    def serving(self, *command, **environment):
        """A server, under what servers run under."""
        return self.running(*self.under, *command, **environment)

    def go(self):
        """Programs in Go."""
        need("go")
        if not (self.folder / "service").exists():
            run("go", "build", "-o", self.folder, "./...", cwd=HERE / "fixtures/watched/go")

    def java(self):
        """Programs in Java."""
        need("javac")
        if not (self.folder / "classes").exists():
            sources = (HERE / "fixtures/watched/java").glob("*.java")
            run("javac", "-d", self.folder / "classes", *sources)


def stop(process):
    started = descendants(process.pid)

    def send(number):
        for one in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)

    send(signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        send(signal.SIGKILL)
        process.wait()


def said(process, line):
    heard = process.stdout.readline().strip()
    if heard != line:
        sys.exit(f"error: {process.args[0]} said {heard!r} in place of {line!r}")


# Servers and services: each starts one with a module, and yields its process and what makes it work.


def engine_settings(folder, module):
    """A file for OPENSSL_CONF, which lets OpenSSL use the keys of a module."""
    (folder / "openssl.cnf").write_text(
        "openssl_conf = init\n[init]\nengines = engines\n[engines]\npkcs11 = pkcs11\n[pkcs11]\n"
        f"engine_id = pkcs11\ndynamic_path = {ENGINE}\nMODULE_PATH = {module}\nPIN = {PIN}\ninit = 1\n"
    )


@contextlib.contextmanager
def nginx(place, module, environment):
    program = need("nginx")
    if not Path(ENGINE).exists():
        raise Missing("libengine-pkcs11-openssl")
    port = free_port()
    folder = place.folder
    kept = "".join(f"env {name};\n" for name in ["SOFTHSM2_CONF", *environment])
    settings = folder / "nginx.conf"
    settings.write_text(
        f"daemon off; worker_processes 2; user root; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
        f"\n{kept}events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body;"
        f" proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;"
        f" uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port} ssl; return 204;\n"
        f"ssl_certificate {place.certificate};\nssl_certificate_key 'engine:pkcs11:{KEY}'; }} }}\n"
    )
    engine_settings(folder, module)
    variables = environment | {"OPENSSL_CONF": str(folder / "openssl.cnf")}
    with place.serving(program, "-c", settings, **variables) as started:
        until("nginx", lambda: listens(port) and len(users(started.pid, "pkcs11")) == 3)
        yield started, lambda: handshake(port)


@contextlib.contextmanager
def stunnel(place, module, environment):
    program = need("stunnel4")
    if not Path(ENGINE).exists():
        raise Missing("libengine-pkcs11-openssl")
    port, behind = free_port(), free_port()
    settings = place.folder / "stunnel.conf"
    settings.write_text(
        f"foreground = yes\npid =\nengine = pkcs11\nengineCtrl = MODULE_PATH:{module}\n"
        f"engineCtrl = PIN:{PIN}\n[web]\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{behind}\n"
        f"cert = {place.certificate}\nengineId = pkcs11\nkey = {KEY}\n"
    )
    answers = [sys.executable, "-m", "http.server", behind, "--bind", "127.0.0.1"]
    with (
        place.running(*answers, "--directory", place.folder / "tokens"),
        place.serving(program, settings, **environment) as started,
    ):
        until("stunnel", lambda: listens(port) and listens(behind))
        yield started, lambda: handshake(port)


@contextlib.contextmanager
def ssh_agent(place, module, environment):
    folder = place.folder
    # The installed one has a group of its own, which nothing that it runs under can look into.
    program = shutil.copy(need("ssh-agent"), folder)
    agent = folder / "agent"
    agent.unlink(missing_ok=True)
    (folder / "askpass").write_text('#!/bin/sh\necho "$PIN"\n')
    (folder / "askpass").chmod(0o700)
    asked = place.environment | {
        "SSH_AUTH_SOCK": str(agent), "SSH_ASKPASS": str(folder / "askpass"),
        "SSH_ASKPASS_REQUIRE": "force",
    }
    public = folder / "ssh.pub"

    def sign():
        for _ in range(SIGNATURES):
            run("ssh-keygen", "-Y", "sign", "-n", "file", "-f", public, input="x", env=asked)

    options = ["-D", "-a", agent, "-P", "/usr/lib/*"]
    with place.serving(program, *options, **environment) as started:
        until("ssh-agent", agent.exists)
        run("ssh-add", "-s", module, env=asked)
        public.write_text(run("ssh-add", "-L", env=asked).splitlines()[0] + "\n")
        yield started, sign


@contextlib.contextmanager
def go_service(place, module, environment):
    place.go()
    port = free_port()
    words = [module, TOKEN, "web", place.certificate, f"127.0.0.1:{port}"]
    with place.serving(place.folder / "service", *words, **environment) as started:
        said(started, "ready")
        yield started, lambda: handshake(port)


@contextlib.contextmanager
def java_service(place, module, environment):
    place.java()
    port = free_port()
    words = ["-cp", place.folder / "classes", "Service", module, port]
    with place.serving("java", *words, **environment) as started:
        said(started, "ready")
        yield started, lambda: handshake(port)
