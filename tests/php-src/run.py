#!/usr/bin/env python3
"""Runs PHP's own tests (the phpt files of its source package) over HTTP and compares with differences.txt.

    run.py --howdah PROGRAM --source DIRECTORY --ini DIRECTORY [--modes classic,worker] [--filter TEXT]

Request tests (sections POST, GET, COOKIE, PUT, EXPECTHEADERS) run in every mode, with one server for each set of
settings. Ordinary tests run in classic mode and in snapshot mode with an empty boot file. A test that fails is run by
php-cgi as well: one that fails there too is only counted. The remaining failures must be listed in differences.txt with
their modes and reason. An unlisted failure fails the run, and so does a listed test that passes.

No test may start a process: those that mention a function which does are left out, the functions are disabled in both
programs, and the run has its own limit of processes, as the user `nobody` if root started it.
"""
import argparse
import encodings.idna  # pylint: disable=unused-import  # used by http.client, and out of reach once root is `nobody`
import glob
import gzip
import http.client
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
REQUEST = {"POST", "POST_RAW", "PUT", "GET", "COOKIE", "EXPECTHEADERS", "GZIP_POST", "DEFLATE_POST"}
# Sections for the command line, for a debugger, and for tests that are run by other means.
FOREIGN = {"ARGS", "STDIN", "ENV", "PHPDBG", "CAPTURE_STDIO", "FILE_EXTERNAL", "REDIRECTTEST", "XFAIL", "CGI_ARGS"}
MODES = ["classic", "worker", "snapshot", "async"]
ORDINARY = ["Zend/tests", "ext/standard/tests", "ext/spl/tests", "ext/date/tests", "ext/pcre/tests", "ext/reflection/tests",
            "ext/json/tests", "ext/ctype/tests", "tests/lang", "tests/classes", "tests/output", "tests/func"]
# They start servers, sleep, fill disks or need a network.
LEFT_OUT = re.compile(r"ext/standard/tests/(network|mail|http|streams|general_functions|file)/|sapi/(cli|fpm|phpdbg)/"
                      r"|ext/phar/")
# Programs that a test starts would inherit the request: php-cgi would run the same test again, without end.
STARTERS = ["proc_open", "popen", "exec", "shell_exec", "system", "passthru", "mail", "mb_send_mail", "pcntl_fork",
            "pcntl_exec", "pcntl_rfork", "pcntl_forkx", "pcntl_unshare", "posix_kill"]
STARTS_PROGRAMS = re.compile(rb"PHP_BINARY|TEST_PHP_|popen|exec\s*\(|passthru|system\s*\(|mail\s*\(|`|proc_|pcntl_"
                             rb"|posix_kill|posix_set|run-?_?tests?\b|cli_server|disable_functions|get_defined_functions|FFI", re.I)
# ini_set() persists in worker mode, and open_basedir cannot be widened again: there such a test gets its own server.
LASTS = re.compile(rb"ini_set\(.open_basedir")
# Maximum number of processes and threads of the whole run: one server with one worker, or one php-cgi.
PROCESSES = 150
LONGEST_FILE = 1 << 30
# Maximum private memory of each process.
MEMORY = 4 << 30
# Settings of run-tests.php.
SETTINGS = {
    "output_handler": "", "open_basedir": "", "disable_functions": ",".join(STARTERS), "output_buffering": "0", "error_reporting": "32767",
    "display_errors": "1", "display_startup_errors": "1", "log_errors": "0", "html_errors": "0", "report_memleaks": "1",
    "docref_root": "", "docref_ext": ".html", "error_prepend_string": "", "error_append_string": "",
    "auto_prepend_file": "", "auto_append_file": "", "ignore_repeated_errors": "0", "precision": "14",
    "serialize_precision": "-1", "memory_limit": "128M", "opcache.file_update_protection": "0",
    "opcache.revalidate_freq": "0", "zend.assertions": "1", "zend.exception_ignore_args": "0",
    "zend.exception_string_param_max_len": "15", "short_open_tag": "0", "date.timezone": "UTC", "max_execution_time": "20",
}
SKIPS = {"SKIP_SLOW_TESTS": "1", "SKIP_ONLINE_TESTS": "1", "SKIP_PERF_SENSITIVE": "1", "SKIP_IO_CAPTURE_TESTS": "1"}
FORMATS = {"%e": re.escape(os.sep), "%s": r"[^\r\n]+", "%S": r"[^\r\n]*", "%a": r".+", "%A": r".*", "%w": r"\s*",
           "%i": r"[+-]?\d+", "%d": r"\d+", "%x": r"[0-9a-fA-F]+", "%f": r"[+-]?\.?\d+\.?\d*(?:[Ee][+-]?\d+)?", "%c": r"."}


class Test:
    """One phpt file: its sections, and the resulting script."""

    def __init__(self, tree, name):
        self.name = name
        with open(os.path.join(tree, name), "rb") as file:
            parts = re.split(rb"^--([A-Z_]+)--[ \t]*\r?\n", file.read(), flags=re.M)
        self.sections = {parts[i].decode(): parts[i + 1] for i in range(1, len(parts) - 1, 2)}
        self.script = name[:-len("t")]
        self.tree = tree

    def has(self, *names):
        return any(name in self.sections for name in names)

    def section(self, name):
        return self.sections.get(name, b"")

    def text(self, name):
        return self.section(name).decode("latin-1").strip()

    def settings(self):
        place = os.path.dirname(os.path.join(self.tree, self.name))
        lines = [line.replace("{PWD}", place) for line in self.text("INI").splitlines() if "=" in line]
        return tuple(tuple(part.strip().strip('"') for part in line.split("=", 1)) for line in lines)

    def write(self, suffix="", section="FILE"):
        path = os.path.join(self.tree, self.script + suffix)
        code = self.section(section)
        if section == "FILE" and self.has("FILEEOF"):
            code = self.section("FILEEOF").rstrip(b"\r\n")
        with open(path, "wb") as file:
            file.write(code)
        return path

    def request(self):
        headers = {}
        method, body = "GET", None
        if self.has("COOKIE"):
            headers["Cookie"] = self.text("COOKIE").replace("\n", " ")
        if self.has("POST_RAW", "PUT"):
            method = "PUT" if self.has("PUT") else "POST"
            first, _, body = self.section("PUT" if self.has("PUT") else "POST_RAW").partition(b"\n")
            headers["Content-Type"] = first.decode("latin-1").split(":", 1)[1].strip()
            body = body.rstrip(b"\r\n")
        elif self.has("POST", "GZIP_POST", "DEFLATE_POST"):
            method = "POST"
            body = (self.section("POST") or self.section("GZIP_POST") or self.section("DEFLATE_POST")).strip()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            if self.has("GZIP_POST"):
                body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
            elif self.has("DEFLATE_POST"):
                body, headers["Content-Encoding"] = zlib.compress(body), "gzip"
        return method, self.text("GET"), headers, body

    def passes(self, headers, body):
        got = body.decode("latin-1").replace("\r\n", "\n").strip()
        for line in self.text("EXPECTHEADERS").splitlines():
            name, _, value = line.partition(":")
            found = [have for key, have in headers if key.lower() == name.strip().lower()]
            if name.strip() and value.strip() not in found:
                return False
        if self.has("EXPECT"):
            return got == self.text("EXPECT").replace("\r\n", "\n")
        if self.has("EXPECTF"):
            return re.fullmatch(expression(self.text("EXPECTF").replace("\r\n", "\n")), got, re.S) is not None
        if self.has("EXPECTREGEX"):
            return re.match(self.text("EXPECTREGEX"), got, re.S) is not None
        return True


def expression(wanted):
    """The format of EXPECTF as a regular expression, `%r…%r` included."""
    out = []
    for number, part in enumerate(wanted.split("%r")):
        if number % 2:
            out.append("(?:" + part + ")")
            continue
        for piece in re.split(r"(%[a-zA-Z])", part):
            out.append(FORMATS.get(piece, re.escape(piece)))
    return "".join(out)


class Server:
    """Howdah with one mode and one set of settings."""

    def __init__(self, options, mode, settings, number):
        self.tree, self.mode = options.tree, mode
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = os.path.join(options.work, f"{mode}-{number}")
        os.makedirs(os.path.join(self.place, "tmp"), exist_ok=True)
        config = [f'root = "{self.tree}"', f'listen = ["127.0.0.1:{self.port}"]', "workers = 1",
                  f'mode = "{mode}"', "deadline = 40"]
        if mode == "snapshot":
            config.append(f'boot = "{self.boot("empty.php", "<?php ")}"')
        elif mode in ("worker", "async"):
            config.append(f'script = "{self.boot("worker.php", WORKER)}"')
        values = ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in {**SETTINGS, **dict(settings)}.items())
        config += ["[log]", f'error = "{self.place}/error.log"', "[php]", f"ini = {{ {values} }}",
                   "env = { " + ", ".join(f'{name} = "{value}"' for name, value in SKIPS.items()) + " }"]
        path = os.path.join(self.place, "howdah.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(config) + "\n")
        with open(os.path.join(self.place, "output"), "wb") as output:
            self.process = subprocess.Popen([options.howdah, "serve", "--config", path], stdout=output, stderr=output,
                                            env={**os.environ, "TMPDIR": os.path.join(self.place, "tmp")})
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def boot(self, name, code):
        path = os.path.join(self.place, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        return path

    def wait(self):
        for _ in range(400):
            try:
                self.get("/run-tests.ready.php", 5)
                return
            except (OSError, http.client.HTTPException):
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        with open(os.path.join(self.place, "output"), encoding="utf-8", errors="replace") as output:
            raise SystemExit(f"the server does not start: {self.place}\n{output.read()}")

    def get(self, path, timeout=40, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            status = ("Status", f"{response.status} {response.reason}")
            return [*response.getheaders(), status], response.read()
        finally:
            connection.close()

    def run(self, test):
        """The response, if it differs from the expected one."""
        method, query, headers, body = test.request()
        path = "/" + test.script.replace(" ", "%20") + ("?" + query.replace(" ", "%20") if query else "")
        try:
            headers, answer = self.get(path, method=method, headers=headers, body=body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            headers, answer = [("error", repr(error))], b""
        return (headers, answer) if not test.passes(headers, answer) else None

    def skips(self, test):
        if not test.has("SKIPIF"):
            return False
        test.write(".skip.php", "SKIPIF")
        try:
            body = self.get("/" + test.script + ".skip.php")[1]
        except (OSError, http.client.HTTPException):
            return True
        finally:
            os.unlink(os.path.join(test.tree, test.script + ".skip.php"))
        return body.strip().lower().startswith(b"skip")

    def clean(self, test):
        if test.has("CLEAN"):
            test.write(".clean.php", "CLEAN")
            try:
                self.get("/" + test.script + ".clean.php")
            except (OSError, http.client.HTTPException):
                pass
            os.unlink(os.path.join(test.tree, test.script + ".clean.php"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# The script of a request in a separate function, as a loop requires.
WORKER = """<?php
$root = $_SERVER['DOCUMENT_ROOT'] ?? '';
while (frankenphp_handle_request(static function () {
    chdir(dirname($_SERVER['DOCUMENT_ROOT'] . explode('?', $_SERVER['REQUEST_URI'])[0]));
    include $_SERVER['DOCUMENT_ROOT'] . rawurldecode(explode('?', $_SERVER['REQUEST_URI'])[0]);
})) {
}
"""


def by_cgi(options, test):
    """True if PHP's own CGI program passes."""
    method, query, headers, body = test.request()
    script = os.path.join(test.tree, test.script)
    environment = {"PATH": os.environ["PATH"], "REDIRECT_STATUS": "200", "REQUEST_METHOD": method, "QUERY_STRING": query,
                   "SCRIPT_FILENAME": script, "PATH_TRANSLATED": script, "SERVER_PROTOCOL": "HTTP/1.1", "TZ": "",
                   "PHPRC": options.ini, "PHP_INI_SCAN_DIR": os.path.join(options.ini, "conf.d"), "TMPDIR": options.work,
                   **SKIPS}
    for name, value in headers.items():
        environment[("" if name == "Content-Type" else "HTTP_") + name.upper().replace("-", "_")] = value
    if body is not None:
        environment["CONTENT_LENGTH"] = str(len(body))
    settings = [f"-d{key}={value}" for key, value in {**SETTINGS, **dict(test.settings())}.items()]
    try:
        done = subprocess.run([options.cgi, *settings], input=body or b"", env=environment, timeout=40, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.path.dirname(script))
    except subprocess.TimeoutExpired:
        return False
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    lines = [line.partition(":") for line in head.decode("latin-1").splitlines()]
    return test.passes([(name.strip(), value.strip()) for name, _, value in lines], answer)


def collect(options):
    """All tests by the server that they need: mode, settings, and the test if it gets its own server."""
    jobs = defaultdict(list)
    for folder, _, files in os.walk(options.tree):
        for file in sorted(files):
            name = os.path.relpath(os.path.join(folder, file), options.tree)
            if not file.endswith(".phpt") or LEFT_OUT.search(name) or options.filter not in name:
                continue
            test = Test(options.tree, name)
            if any(STARTS_PROGRAMS.search(test.section(name)) for name in test.sections):
                continue
            if test.has(*FOREIGN) or not test.has("FILE", "FILEEOF") or not test.has("EXPECT", "EXPECTF", "EXPECTREGEX"):
                continue
            if test.has(*REQUEST):
                for mode in options.modes:
                    alone = test.name if mode == "worker" and LASTS.search(test.section("FILE")) else ""
                    jobs[mode, test.settings(), alone].append(test)
            elif any(name.startswith(place + "/") for place in ORDINARY) and not test.has("INI"):
                for mode in set(options.modes) & {"classic", "snapshot"}:
                    jobs[mode, (), ""].append(test)
    return jobs


def run(options, jobs):
    counts, outcomes = defaultdict(int), {}
    for number, ((mode, settings, _), tests) in enumerate(sorted(jobs.items(), key=lambda job: job[0])):
        server = Server(options, mode, settings, number)
        try:
            for test in tests:
                outcome = judge(options, server, test)
                counts[mode, outcome] += 1
                outcomes[mode, test.name] = outcome
        finally:
            server.stop()
        shutil.rmtree(server.place, ignore_errors=True)
    return counts, outcomes


def judge(options, server, test):
    if server.skips(test):
        return "skipped"
    test.write()
    failed = server.run(test)
    server.clean(test)
    if not failed:
        return "pass"
    alike = not by_cgi(options, test)
    server.clean(test)
    if alike:
        return "fail in php-cgi too"
    path = os.path.join(options.source, "failed", server.mode, test.script + ".out")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write("".join(f"{name}: {value}\n" for name, value in failed[0]).encode() + b"\n" + failed[1])
    return "differ"


def confine(options):
    """Limits the processes, their memory and the sizes of files of the whole run. Root becomes `nobody`, since root has no limit."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for folder, folders, files in os.walk(options.source):
            for name in [".", *folders, *files]:
                os.chown(os.path.join(folder, name), nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        os.environ.update(HOME=options.work, USER="nobody", LOGNAME="nobody")
    limit = running(os.getuid()) + PROCESSES
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LONGEST_FILE, LONGEST_FILE))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def running(user):
    """The number of threads that a user has."""
    count = 0
    for path in glob.glob("/proc/[0-9]*/status"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = dict(line.rstrip("\n").partition(":")[::2] for line in file)
        except OSError:
            continue
        if fields["Uid"].split()[0] == str(user):
            count += int(fields["Threads"])
    return count


def listed():
    """The lines of differences.txt: mode (or `all`), name, reason."""
    found = {}
    with open(os.path.join(HERE, "differences.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                modes, name, reason = line.split(None, 2)
                for mode in MODES if modes == "all" else modes.split(","):
                    found[mode, name] = reason.strip()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--howdah", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--filter", default="")
    parser.add_argument("--ini", required=True)
    options = parser.parse_args()
    options.howdah, options.source = os.path.abspath(options.howdah), os.path.abspath(options.source)
    options.modes = options.modes.split(",")
    options.tree = os.path.abspath(os.path.join(options.source, "tree"))
    options.cgi = os.path.abspath(os.path.join(options.source, "php-cgi"))
    options.work = os.path.abspath(os.path.join(options.source, "run"))
    confine(options)
    shutil.rmtree(options.work, ignore_errors=True)
    os.makedirs(options.work)
    with open(os.path.join(options.tree, "run-tests.ready.php"), "w", encoding="utf-8") as file:
        file.write("<?php echo 'ready';")
    counts, outcomes = run(options, collect(options))
    known = listed()
    for mode in options.modes:
        print(mode + ":", ", ".join(f"{n} {what}" for (of, what), n in sorted(counts.items()) if of == mode))
    new = sorted(key for key, outcome in outcomes.items() if outcome == "differ" and key not in known)
    # A few depend on earlier tests, which a filter excludes.
    gone = [] if options.filter else sorted(key for key in known if outcomes.get(key) == "pass")
    for mode, name in new:
        print(f"not listed: {mode} {name}")
    for mode, name in gone:
        print(f"listed and passes: {mode} {name}")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
