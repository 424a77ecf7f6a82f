"""sluice chat: through a pipe, and in a terminal (a pty), with Ctrl-C."""
import os
import pty
import re
import select
import subprocess
import time

import pytest

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """The program in a terminal of its own: what it shows, and keys for it."""

    def __init__(self, command, env):
        self.master, slave = pty.openpty()
        # A session of its own makes the pty its controlling terminal, so that Ctrl-C is a SIGINT.
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            preexec_fn=lambda: (os.setsid(), _take_terminal(slave)),
        )
        os.close(slave)
        self.shown = b""

    def type(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, pattern, seconds=60):
        """Waits until what came since the last wait matches; returns that text."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern.encode(), self.shown)
            if found:
                text = self.shown[: found.end()].decode(errors="replace")
                self.shown = self.shown[found.end() :]
                return text
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.shown!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    data = b""
                assert data, f"it ended without {pattern!r}: {self.shown!r}"
                self.shown = ESCAPES.sub(b"", self.shown + data)

    def exit_code(self, seconds=30):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    os.read(self.master, 65536)
                except OSError:
                    pass
        return self.process.wait(timeout=1)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def _take_terminal(slave):
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(binary, model, tmp_path):
    opened = []

    def open_terminal(*arguments):
        env = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm"}
        env.pop("XDG_STATE_HOME", None)
        chat = Terminal([binary, "chat", "-m", model, *map(str, arguments)], env)
        opened.append(chat)
        chat.wait_for(r"/help lists the commands")
        chat.wait_for("> ")
        return chat

    yield open_terminal
    for chat in opened:
        chat.close()


def test_a_pipe_gets_plain_answers(sluice, model):
    stdin = "What is the capital of France?\n\nWhat is two plus two?\n/exit\nnever read\n"
    done = sluice("chat", "-m", model, "-n", 24, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout.splitlines()[0]
    assert len(done.stdout.splitlines()) >= 2
    assert "\x1b" not in done.stdout and "> " not in done.stdout


def test_a_pipe_reports_errors(sluice, model):
    done = sluice("chat", "-m", model, "-n", 9000, stdin="Hi\n")
    assert done.returncode == 1
    assert "9000" in done.stderr


def test_turns_share_their_prefix(sluice, model):
    stdin = "Say hello.\nSay it again.\n"
    done = sluice("chat", "-m", model, "-n", 12, "--stats", stdin=stdin)
    cached = [int(n) for n in re.findall(r"\((\d+) cached\)", done.stderr)]
    assert len(cached) == 2 and cached[0] == 0 and cached[1] > 20, done.stderr


def test_multi_turn_in_a_terminal(terminal):
    chat = terminal()
    chat.type("What is the capital of France?\r")
    chat.wait_for(r"Paris[^\n]*\r?\n")
    chat.wait_for("> ")
    chat.type("/stats\r")
    chat.wait_for("statistics on")
    chat.wait_for("> ")
    chat.type("And of Italy?\r")
    chat.wait_for(r"tok/s")
    chat.type("/exit\r")
    assert chat.exit_code() == 0


def test_ctrl_c_stops_the_answer_and_not_the_program(terminal):
    chat = terminal("--ignore-eos", "-n", 4000)
    chat.type("Count from one to a thousand.\r")
    chat.wait_for(r"thousand\.\r?\n.+")
    chat.type("\x03")
    chat.wait_for(r"\[stopped\]")
    chat.wait_for("> ")
    chat.type("/help\r")
    chat.wait_for("/system TEXT")
    chat.wait_for("> ")
    assert chat.process.poll() is None
    chat.type("\x03")
    chat.wait_for("again")
    chat.wait_for("> ")
    chat.type("\x03")
    assert chat.exit_code() == 130


def test_commands_and_history(terminal, tmp_path):
    chat = terminal()
    chat.type("/system You are a pirate.\r")
    chat.wait_for("new system prompt")
    chat.wait_for("> ")
    chat.type("/clear\r")
    chat.wait_for("new conversation")
    chat.wait_for("> ")
    chat.type("/dance\r")
    chat.wait_for("unknown command /dance")
    chat.wait_for("> ")
    chat.type("\x04")
    assert chat.exit_code() == 0
    history = (tmp_path / ".local/state/sluice/chat_history").read_text()
    assert "You are a pirate." in history
