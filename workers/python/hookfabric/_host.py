"""The host: a process that runs the functions of hooks for a worker.

It reads requests from one descriptor and writes answers to another. A frame has
the length of the JSON and the number of the request, four bytes each, then the
JSON. Each request gets one answer, with its number. The standard streams belong
to the hooks.

Without coroutines the host is a plain loop that calls functions. The first
awaitable starts an event loop, which then runs between two frames.
"""

import faulthandler
import json
import os
import struct
import sys

HEAD = struct.Struct(">II")
MOST_WORDS = 2 << 10
MOST_TRACEBACK = 32 << 10

# The levels of recursion for JSON, in addition to Python's usual limit.
DEEP = 12000
# The largest number of digits of an integer. Python itself refuses more.
MOST_DIGITS = 4300


def whole(digits):
    """Parse an integer. A longer one becomes a float, so that an agent cannot make a hook fail with it."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def deep(work):
    """Return work with a higher recursion limit, for deeply nested values."""

    def deeper(value):
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(usual + DEEP)
        try:
            return work(value)
        finally:
            sys.setrecursionlimit(usual)

    return deeper


decode = deep(json.JSONDecoder(parse_int=whole).decode)
# Refuses NaN and Infinity, which json.dumps writes and other parsers reject.
encode = deep(json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode)


class Unfit(Exception):
    """A handler or its answer is not valid. The worker passes the text on."""


class Host:
    def __init__(self, orders, answers):
        self.orders, self.answers = orders, answers
        self.pid = os.getpid()
        self.buffer = bytearray()
        self.functions = {}
        self.conditions = {}
        self.tasks = {}
        self.ready = {}  # calls with an awaited condition that is true, by request
        self.loop = None
        for descriptor in (orders, answers):
            os.set_inheritable(descriptor, False)
        os.register_at_fork(after_in_child=self.forked)
        sys.argv = ["hookfabric"]
        faulthandler.enable()
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")

    # Frames.

    def serve(self):
        while True:
            frame = self.frame()
            if frame:
                self.take(*frame)
            elif self.ready:
                number = next(iter(self.ready))
                self.ask(number, *self.ready.pop(number))
            elif self.loop is None:
                self.fill()
            else:
                self.turn()

    def turn(self):
        """Run coroutines until a frame arrives. Sync functions are called between
        two turns, because they may run an event loop of their own."""
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            pass  # raised by a task that a hook left running

    def readable(self):
        self.fill()
        self.loop.stop()

    def fill(self):
        data = os.read(self.orders, 1 << 16)
        if not data:
            self.leave()
        self.buffer += data

    def frame(self):
        buffer = self.buffer
        if len(buffer) < HEAD.size:
            return None
        size, number = HEAD.unpack_from(buffer)
        end = HEAD.size + size
        if len(buffer) < end:
            return None
        body = bytes(buffer[HEAD.size:end])
        del buffer[:end]
        return number, body

    def write(self, number, text):
        if os.getpid() != self.pid:
            os._exit(0)  # a child that a hook forked and that returned from the hook
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # a hook may close its own streams
        body = text.encode("ascii")
        rest = memoryview(HEAD.pack(len(body), number) + body)
        while rest:
            rest = rest[os.write(self.answers, rest):]

    def leave(self):
        """Run the exit handlers, for at most 1 s, and exit without waiting for threads."""
        import atexit
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(1)
        try:
            atexit._run_exitfuncs()
        finally:
            os._exit(0)

    def forked(self):
        """Close the pipes in a child that a hook forked, because it must not answer for
        the host. If the child opens files with the same numbers, they are the hook's."""
        if self.orders is not None:
            os.close(self.orders)
            os.close(self.answers)
            self.orders = self.answers = None

    # Requests.

    def take(self, number, body):
        try:
            order = decode(body.decode())
            if "call" in order:
                event = self.event(**order["event"])
                if "trace" in order:
                    event._trace = order["trace"]
                self.call(number, order["call"], event)
            elif "cancel" in order:
                task = self.tasks.get(number)
                if self.ready.pop(number, None):
                    raise self.own("asyncio").CancelledError
                if task:
                    self.loop.call_soon(task.cancel)  # later, because a task that has not begun would not answer
            elif "load" in order:
                self.load(order["load"], order["handler"])
                self.write(number, encode({"async": is_async(self.functions[order["load"]])}))
            elif "dirs" in order:
                self.write(number, encode({"loaded": self.begin(order)}))
            else:
                self.write(number, "{}")
        except BaseException as fault:
            self.fail(number, fault)

    def begin(self, order):
        limit(order["memory"])
        self.most = order["most"]
        sys.meta_path.insert(0, Embedded({"hookfabric": order["words"], "hookfabric._loop": order["loop"]}))
        # Last, so that MassGen itself is found first where it is installed.
        sys.meta_path.append(Embedded({"massgen": "", "massgen.mcp_tools": "", "massgen.mcp_tools.hooks": order["massgen"],
                                       "massgen.mcp_tools._builtins": order["massgen_builtins"]}))
        from hookfabric import HookEvent

        self.event = HookEvent
        self.standard = sys.path[:]
        sys.path[:0] = order["dirs"]
        loaded = []
        for function in order["functions"]:
            try:
                self.load(function["load"], function["handler"])
            except BaseException:
                continue  # a call of the function reports the error
            loaded.append(function["load"])
        return loaded

    def load(self, number, handler):
        function = find(handler)
        if not callable(function):
            raise Unfit("it is of the type %s, which cannot be called" % type(function).__name__)
        condition = condition_of(function)
        if condition is not None:
            self.conditions[number] = condition
        self.functions[number] = function

    # Calls.

    def call(self, number, function, event):
        """Call a function, unless it has a condition that is false."""
        condition = self.conditions.get(function)
        if condition is None:
            return self.ask(number, function, event)
        try:
            holds = condition(event)
            if hasattr(holds, "__await__"):
                return self.start(number, self.consider(number, function, event, holds))
            holds = bool(holds)
        except BaseException as fault:
            return self.ask(number, function, event, self.doubt(fault))
        if holds:
            self.ask(number, function, event)
        else:
            self.write(number, "{}")

    async def consider(self, number, function, event, awaitable):
        """Await a condition. The function itself is called between two turns of the
        loop, like every other one."""
        try:
            holds, note = bool(await awaitable), None
        except BaseException as fault:
            if type(fault).__name__ == "CancelledError" or isinstance(fault, MemoryError):
                return self.fail(number, fault)
            holds, note = True, self.doubt(fault)
        finally:
            del self.tasks[number]
        if not holds:
            return self.write(number, "{}")
        self.ready[number] = function, event, note
        self.loop.stop()

    def doubt(self, fault):
        """Return the note about a failed condition, which counts as true."""
        if isinstance(fault, MemoryError):
            raise fault
        told = self.told(fault)
        return {"noted": "its condition raised %s, and counts as true" % told["error"], "doubt": told.get("traceback", "")}

    def ask(self, number, function, event, note=None):
        try:
            answer = self.functions[function](event)
            if hasattr(answer, "__await__"):
                self.start(number, self.attend(number, answer, note))
            else:
                self.finish(number, answer, note)
        except BaseException as fault:
            self.fail(number, fault, note)

    def start(self, number, work):
        if self.loop is None:
            asyncio = self.own("asyncio")
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
            self.loop.add_reader(self.orders, self.readable)
        self.tasks[number] = self.loop.create_task(work)

    async def attend(self, number, awaitable, note):
        try:
            self.finish(number, await awaitable, note)
        except BaseException as fault:
            self.fail(number, fault, note)
        finally:
            del self.tasks[number]

    def own(self, name):
        """Import a module of the standard library, even if the hooks' folders have one of that name."""
        path, sys.path[:] = sys.path[:], self.standard
        try:
            return __import__(name)
        finally:
            sys.path[:] = path

    # Answers.

    def finish(self, number, answer, note=None):
        if answer is None:
            return self.write(number, encode(note or {}))
        fields = fields_of(answer)
        try:
            text = self.text(fields)
        except Unfit as fault:
            text = self.text(refusal(fields, fault))
        self.write(number, '{"result":%s%s}' % (text, "," + encode(note)[1:-1] if note else ""))

    def text(self, fields):
        try:
            text = encode(fields)
        except (TypeError, ValueError, RecursionError) as fault:
            raise Unfit("answered with something that is not JSON: %s" % words(fault)) from None
        if len(text) > self.most:
            raise Unfit("answered with %d bytes; an answer has at most %d" % (len(text), self.most))
        return text

    def fail(self, number, fault, note=None):
        try:
            self.write(number, encode(dict(note or {}, **self.told(fault))))
        except OSError:
            self.leave()
        except MemoryError:
            os._exit(1)

    def told(self, fault):
        if isinstance(fault, Unfit):
            return {"error": words(fault)}
        told = {"error": "%s: %s" % (type(fault).__name__, words(fault)), "raised": True}
        if isinstance(fault, MemoryError):
            told["spent"] = True
        elif type(fault).__name__ == "CancelledError":
            told["spent"] = "threading" in sys.modules and sys.modules["threading"].active_count() > 1
        else:
            trace = fault.__traceback__
            while trace and trace.tb_frame.f_globals is globals():
                trace = trace.tb_next  # show only the hook's part
            lines = self.own("traceback").format_exception(type(fault), fault, trace)
            told["traceback"] = "".join(lines)[-MOST_TRACEBACK:]
        return told


class Embedded:
    """Imports packages from sources in memory."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        if name not in self.sources:
            return None
        return type(sys.__spec__)(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(self.sources[name], "<%s>" % name, "exec"), module.__dict__)


def limit(size):
    """Limit the memory of this process and of its children."""
    import resource

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        size = min(size, most)
    try:
        resource.setrlimit(kind, (size, size))
    except (OSError, ValueError):
        if sys.platform == "linux":
            raise


def find(handler):
    """Import the object that a dotted name names: an attribute of a module, or an attribute of such an object."""
    path, first = handler.split("."), None
    if len(path) < 2:
        raise Unfit("it names no function; write module.function")
    for end in range(len(path) - 1, 0, -1):
        module = ".".join(path[:end])
        try:
            __import__(module)
        except ModuleNotFoundError as fault:
            if not (module + ".").startswith("%s." % fault.name):
                raise  # the module exists, but imports one that does not
            first = first or fault
            continue
        found = sys.modules[module]
        try:
            for name in path[end:]:
                found = getattr(found, name)
        except AttributeError as fault:
            raise first or fault
        return found
    raise first


def condition_of(function):
    """Return a handler's condition, or None. On objects and classes, a condition that is
    not callable is an unrelated attribute."""
    while not hasattr(function, "condition") and type(function).__name__ == "partial" and hasattr(function, "func"):
        function = function.func
    condition = None if isinstance(function, type) else getattr(function, "condition", None)
    if callable(condition):
        return condition
    if condition is not None and hasattr(function, "__code__"):
        raise Unfit("its condition is of the type %s; write a function of the event" % type(condition).__name__)
    return None


def is_async(function):
    """Report whether a call of function returns a coroutine, as far as its code shows."""
    while type(function).__name__ == "partial" and hasattr(function, "func"):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    return bool(getattr(code, "co_flags", 0) & 0x180)  # CO_COROUTINE, CO_ITERABLE_COROUTINE


def fields_of(answer):
    """Return the fields of an answer: a dict, or a HookResult of this package or of MassGen."""
    if isinstance(answer, dict):
        return answer
    if not (hasattr(answer, "decision") or hasattr(answer, "allowed")):
        raise Unfit("answered with a value of the type %s; return a HookResult, a dict or None" % type(answer).__name__)
    if hasattr(answer, "to_dict"):
        answer = answer.to_dict()
    elif hasattr(answer, "__dict__"):
        answer = vars(answer)
    if not isinstance(answer, dict):
        raise Unfit("answered with a result that has no fields; return a HookResult, a dict or None")
    return answer


def refusal(fields, fault):
    """Reduce an answer that cannot be passed on to its refusal. If it is not a refusal,
    raise fault."""
    claude = fields.get("hookSpecificOutput")
    said = claude.get("permissionDecision") if isinstance(claude, dict) else None
    if not fields.get("allowed", True) or said == "deny":
        said = "deny"
    elif fields.get("decision") in ("deny", "block", "fail"):
        said = fields["decision"]
    else:
        raise fault
    reason = fields.get("reason")
    reason = reason[:MOST_WORDS] if isinstance(reason, str) else None
    return {"decision": said, "reason": reason, "hook_errors": [words(fault)]}


def words(fault):
    try:
        return str(fault)[:MOST_WORDS]
    except BaseException:
        return "(the exception has no readable text)"
