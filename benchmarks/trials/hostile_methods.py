"""Hostile methods: the source of one file for each, and whether it may give an answer.

Every method that answers gives the same homes, which depend on the content of the instance. So the campaign knows the
cost that must be reported, and sees the answer of another instance at once.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

# What hostile methods print. It must not appear on the terminal.
NOISE = "HOSTILE-OUTPUT"
# The beginning of every file. The first call of a function may be that of the warm-up.
PREAMBLE = f"""\
import builtins, ctypes, json, math, os, resource, signal, socket, subprocess, sys, threading, time
import numpy as np
NOISE = "{NOISE} "
def homes(instance):
    return [int(instance.hash[m % 60], 16) % instance.n_servers for m in range(instance.n_clients)]
def sockets():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                found.append(int(name))
        except OSError:
            pass
    return found
"""


@dataclass(frozen=True)
class HostileMethod:
    """A hostile method.

    Attributes
    ----------
    name
        The name of its file, without suffix.
    top
        What the module does when it is imported.
    body
        What the function does before it returns its homes.
    may_answer
        Whether it may give a valid answer. Otherwise every command must report its failure.
    may_end_command
        Whether it may kill the command itself; no process can prevent this.
    """

    name: str
    top: str = ""
    body: str = ""
    may_answer: bool = True
    may_end_command: bool = False

    def source(self) -> str:
        """Return the content of its file.

        Returns
        -------
        str
            Python.
        """
        function = "def method(instance, *, seed, time_limit, on_progress=None):\n"
        body = textwrap.indent(textwrap.dedent(self.body).strip() + "\nreturn homes(instance)\n", "    ")
        return PREAMBLE + textwrap.dedent(self.top) + "\n" + function + body


def _at_import(**sources: str) -> list[HostileMethod]:
    return [HostileMethod(name, top=source, may_answer=False) for name, source in sources.items()]


def _failing(**sources: str) -> list[HostileMethod]:
    return [HostileMethod(name, body=source, may_answer=False) for name, source in sources.items()]


def _answering(**sources: str) -> list[HostileMethod]:
    return [HostileMethod(name, body=source) for name, source in sources.items()]


GOOD = HostileMethod("good")

HOSTILE: Sequence[HostileMethod] = (
    *_at_import(
        exit_at_import="os._exit(0)",
        system_exit_at_import="sys.exit(0)",
        loop_at_import="while True: pass",
        sleep_at_import="time.sleep(1000)",
        base_exception_at_import="class Odd(BaseException): pass\nraise Odd('at import')",
        exec_at_import="os.execv('/bin/true', ['true'])",
        memory_at_import="held = []\nwhile True: held.append(np.ones(1 << 22))",
        raises_at_import="raise ImportError('never')",
    ),
    *_failing(
        exit_in_function="os._exit(0)",
        system_exit_in_function="sys.exit(0)",
        exec_in_function="os.execv('/bin/true', ['true'])",
        loops="while True: pass",
        sleeps="time.sleep(1000)",
        loops_without_the_lock="np.linalg.eigvals(np.random.default_rng(0).random((6000, 6000)))\nwhile True: pass",
        ignores_signals="""
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            while True: time.sleep(1)
        """,
        stops_itself="os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)",
        allocates="held = []\nwhile True: held.append(np.ones(1 << 22))",
        allocates_slowly="held = []\nwhile True:\n    held.append(np.ones(1 << 22))\n    time.sleep(0.05)",
        child_allocates="""
            eat = [sys.executable, "-c", "held = []\\nwhile True: held.append(bytearray(b'1') * (1 << 24))"]
            subprocess.Popen(eat).wait()
            time.sleep(1000)
        """,
        kills_own_group="os.killpg(0, signal.SIGKILL)\ntime.sleep(1000)",
        reads_address_zero="ctypes.string_at(0)",
        division_trap="os.kill(os.getpid(), signal.SIGFPE)\ntime.sleep(1000)",
        aborts="os.abort()",
        deep_recursion="""
            sys.setrecursionlimit(10**9)
            def deeper(n): return deeper(n + 1) + 1
            deeper(0)
        """,
        recursion_error="def deeper(n): return deeper(n + 1) + 1\ndeeper(0)",
        raises_base_exception="class Odd(BaseException): pass\nraise Odd('in the function')",
        raises_keyboard_interrupt="raise KeyboardInterrupt",
        raises_generator_exit="raise GeneratorExit",
        raises_without_text="""
            class Odd(Exception):
                def __str__(self): raise RuntimeError('no text')
                __repr__ = __str__
            raise Odd
        """,
        raises_with_long_text="raise RuntimeError('x' * 10_000_000)",
        returns_none="return None",
        returns_text="return 'nearest'",
        returns_too_few="return homes(instance)[:-1]",
        returns_too_many="return homes(instance) + [0]",
        returns_nan="return [math.nan] * instance.n_clients",
        returns_fractions="return [0.5] * instance.n_clients",
        returns_negative="return [-1] * instance.n_clients",
        returns_unknown_server="return [instance.n_servers] * instance.n_clients",
        returns_huge="return [10**30] * instance.n_clients",
        returns_matrix="return np.zeros((instance.n_clients, 2), int)",
        returns_endless_generator="""
            def endless():
                while True: yield 0
            return endless()
        """,
        bound_above_cost="""
            from relocbench import Solution
            return Solution(np.array(homes(instance), np.int32), bound=1e30, status="optimal")
        """,
        bound_is_not_a_number="""
            from relocbench import Solution
            return Solution(np.array(homes(instance), np.int32), bound=math.nan, status="optimal")
        """,
        unknown_status="""
            from relocbench import Solution
            return Solution(np.array(homes(instance), np.int32), status="excellent")
        """,
        sleeps_with_closed_descriptors="os.closerange(0, 1024)\ntime.sleep(1000)",
    ),
    HostileMethod(
        "kills_parent",
        body="os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)",
        may_answer=False,
        may_end_command=True,
    ),
    HostileMethod(
        "kills_group_of_parent",
        body="""
            group = os.getpgid(os.getppid())
            if group != os.getpgid(0): os.killpg(group, signal.SIGKILL)
            time.sleep(1000)
        """,
        may_answer=False,
        may_end_command=True,
    ),
    HostileMethod(
        "prints_at_import", top="os.write(1, NOISE.encode() * 100)\nos.write(2, NOISE.encode())\nprint(NOISE)"
    ),
    HostileMethod("thread_at_import", top="threading.Thread(target=time.sleep, args=(1000,)).start()"),
    HostileMethod("deletes_itself", top="os.unlink(__file__)"),
    HostileMethod(
        "imports_differently",
        top="""
            if os.path.exists(__file__ + ".again"):
                raise ImportError("it is different now")
            open(__file__ + ".again", "w").close()
        """,
    ),
    HostileMethod(
        "loops_in_first_call",
        top="calls = []",
        body="calls.append(1)\nwhile len(calls) == 1: time.sleep(0.1)",
        may_answer=False,
    ),
    *_answering(
        prints="""
            for _ in range(200):
                os.write(1, NOISE.encode() * 80_000)
                os.write(2, NOISE.encode() * 1000)
            print(NOISE)
        """,
        forks_and_both_answer="os.fork()",
        forks_and_both_answer_late="if os.fork() == 0: time.sleep(1.5)",
        leaves_child="""
            if os.fork() == 0:
                time.sleep(1000)
                os._exit(0)
        """,
        leaves_child_in_session="""
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.closerange(0, 1024)
                    time.sleep(1000)
                os._exit(0)
        """,
        leaves_allocating_child_in_session="""
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.closerange(0, 1024)
                    held = []
                    for _ in range(400):
                        held.append(bytearray(b"1") * (1 << 22))
                        time.sleep(0.01)
                    time.sleep(1000)
                os._exit(0)
            time.sleep(0.5)
        """,
        leaves_program="subprocess.Popen(['sleep', '1000'], start_new_session=True)",
        leaves_daemon_thread="threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
        leaves_thread="threading.Thread(target=time.sleep, args=(1000,)).start()",
        leaves_busy_thread="""
            def busy():
                while True: pass
            threading.Thread(target=busy).start()
        """,
        closes_descriptors="os.closerange(0, 1024)",
        closes_output="os.close(1)\nos.close(2)\nsys.stdout = sys.stderr = None",
        writes_garbage="""
            for number in sockets():
                try: os.write(number, b"garbage\\n" * 10)
                except OSError: pass
        """,
        writes_long_garbage="""
            for number in sockets():
                os.set_blocking(number, False)
                for _ in range(500):
                    try: os.write(number, b"g" * 100_000)
                    except OSError: break
                os.set_blocking(number, True)
        """,
        forges_answers="""
            answer = {"home": homes(instance), "bound": 0.0, "status": "optimal", "trace": [], "facts": {}}
            answer |= {"seconds": 0.0, "cpu": 0.0, "peak": 0}
            for number in sockets():
                for line in (["ready", {"cpu": 0.0, "clock": 0.0}], ["result", answer], ["result", answer]):
                    try: os.write(number, json.dumps(line).encode() + b"\\n")
                    except OSError: pass
        """,
        kills_its_session="""
            own = os.getsid(0)
            for name in os.listdir("/proc"):
                try:
                    if name.isdecimal() and int(name) != os.getpid() and os.getsid(int(name)) == own:
                        os.kill(int(name), signal.SIGKILL)
                except OSError: pass
        """,
        changes_instance="""
            answer = homes(instance)
            for name, value in (("cloud_delay", 0.0), ("delay_per_km", 0.0), ("hash", "0" * 64), ("name", "other")):
                object.__setattr__(instance, name, value)
            return answer
        """,
        changes_arrays="""
            answer = homes(instance)
            for name in ("spool", "server_x", "client_x", "storage_capacity", "compute_capacity"):
                array = getattr(instance, name)
                try: array.setflags(write=True)
                except ValueError: pass
                ctypes.memset(array.ctypes.data, 0, array.nbytes)
            return answer
        """,
        lying_array="""
            class Lying:
                calls = 0
                def __len__(self): return 10**9
                def __array__(self, *arguments, **settings):
                    Lying.calls += 1
                    return np.array(homes(instance)) if Lying.calls % 2 else np.array([-1])
            return Lying()
        """,
        returns_generator="return (server for server in homes(instance))",
        returns_bool_array="return np.array(homes(instance), dtype=object)",
        claims_optimum="""
            from relocbench import Solution, evaluate
            cost = evaluate(instance, homes(instance)).objective
            return Solution(np.array(homes(instance), np.int32), bound=cost, status="optimal")
        """,
        odd_facts="""
            from relocbench import Solution
            odd = {"facts": {"x": math.nan, "y\\n": 1e400}, "trace": ((0.0, 1.0, math.inf),)}
            return Solution(np.array(homes(instance), np.int32), **odd)
        """,
        floods_progress="""
            if on_progress is not None:
                for number in range(200_000): on_progress(0.0, 1e12 - number, -math.inf)
        """,
        reports_odd_progress="""
            if on_progress is not None:
                on_progress(math.nan, math.nan, math.nan)
                on_progress.keep([10**9])
                on_progress(-1.0, -1.0, 1e30)
        """,
        replaces_evaluator="""
            answer = homes(instance)
            for module in list(sys.modules.values()):
                for name in ("evaluate", "evaluate_exact"):
                    if name in getattr(module, "__dict__", {}):
                        original = getattr(module, name)
                        def cheap(problem, home, original=original):
                            found = original(problem, [0] * problem.n_clients)
                            return found
                        setattr(module, name, cheap)
            return answer
        """,
        replaces_clock="time.perf_counter = time.monotonic = time.time = lambda: -1e9",
        replaces_builtins="""
            answer = homes(instance)
            builtins.len = builtins.open = builtins.float = builtins.isinstance = None
            json.dumps = json.loads = lambda *a, **k: "{}"
            return answer
        """,
        changes_environment="""
            answer = homes(instance)
            os.environ.clear()
            sys.path.clear()
            sys.argv.clear()
            os.chdir("/")
            os.umask(0o777)
            return answer
        """,
        changes_handlers="""
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            sys.excepthook = sys.settrace = None
        """,
        changes_limits="""
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        """,
        reads_input="sys.stdin.read()\nos.read(0, 1)",
        removes_modules="answer = homes(instance)\nsys.modules.clear()\nreturn answer",
        raises_at_exit="""
            import atexit
            atexit.register(os._exit, 0)
            class Odd:
                def __del__(self): raise SystemExit(0)
            globals()["odd"] = Odd()
        """,
    ),
)
