"""A project whose functions are hard to trace, and its tests, of which all but one fail."""

HARD = """
import asyncio, contextlib, functools, os, subprocess, sys, threading, time

def deep(n):
    return 0 if n == 0 else deep(n - 1) + 1

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def loop(n):
    total = 0
    for i in range(n):
        total += i
    return total

def endless():
    return endless() + 1

class Raises:
    def __repr__(self):
        raise KeyError("no repr")

class Hangs:
    def __repr__(self):
        while True:
            pass

class Lazy:
    touched = []

    @property
    def __class__(self):
        self.touched.append(1)
        raise RuntimeError("not yet")

class Leaves:
    def __repr__(self):
        raise SystemExit(4)

def take(one):
    kept = [one]
    return len(kept)

def big():
    rows = list(range(10 ** 6))
    text = "x" * 10 ** 6
    return rows[-1], text[:3]

def login(password):
    token = "ghp_" + "x7Rq2LmZ9aTb4KcV8nWd" + "1Ys6HgUe3PfJ5oQi"
    api_key = os.environ.get("SERVICE_API_KEY", "")
    return len(password) + len(token) + len(api_key)

def worker(results, n):
    doubled = n * 2
    results.append(doubled)

def in_thread(n):
    results = []
    thread = threading.Thread(target=worker, args=(results, n))
    thread.start()
    thread.join()
    return results[0]

def numbers(n):
    for i in range(n):
        try:
            yield i * i
        finally:
            pass

def delegating(n):
    got = yield from numbers(n)
    return got

async def fetch(n):
    await asyncio.sleep(0)
    return n + 1

async def gather(n):
    first = await fetch(n)
    second = await fetch(first)
    return first + second

async def stream(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i

async def consume(n):
    return [i async for i in stream(n)]

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Base:
    @property
    def size(self):
        return 3

    @classmethod
    def make(cls, *parts):
        return cls()

class Child(Base):
    @decorated
    def area(self, *, scale=1):
        squares = [side * scale for side in range(self.size)]
        return sum(x for x in squares)

    def nested(self, n):
        def inner(m):
            return (lambda k: k + m)(n)
        return inner(1)

double = lambda x: x * 2

def made(n):
    space = {}
    exec(compile("def secret(x):\\n    return x\\n", "<made>", "exec"), space)
    return space["secret"](n)

def child(n):
    code = "import hard; hard.loop(%d); raise SystemExit(0)" % n
    return subprocess.run([sys.executable, "-c", code]).returncode

@contextlib.contextmanager
def managed(n):
    yield n + 1

def sleepy():
    time.sleep(0.01)
    return 1

def reraises(n):
    try:
        return fails(n)
    except ValueError as exc:
        raise KeyError(n) from exc

def fails(n):
    bad = n - 1
    raise ValueError(bad)

def busy():
    end = time.monotonic() + 20
    while time.monotonic() < end:
        take({"a": [1, 2, 3]})

def swallows(n):
    try:
        fails(n)
    except ValueError:
        pass
    return n
"""
TESTS = """
import asyncio, signal, sys, time, unittest, unittest.mock, weakref
import hard

class Hard(unittest.TestCase):
    def test_deep(self): self.assertEqual(hard.deep(900), 1)
    def test_fib(self): self.assertEqual(hard.fib(22), 1)
    def test_loop(self): self.assertEqual(hard.loop(200000), 1)
    def test_endless(self): hard.endless()
    def test_reprs(self):
        for one in (hard.Raises(), hard.Hangs(), hard.Leaves()):
            hard.take(one)
        self.fail()
    def test_big(self): self.assertEqual(hard.big(), 1)
    def test_login(self): self.assertEqual(hard.login("hunter2hunter2"), 1)
    def test_thread(self): self.assertEqual(hard.in_thread(4), 1)
    def test_generator(self): self.assertEqual(list(hard.delegating(3)), 1)
    def test_open_generator(self):
        made = hard.numbers(5)
        next(made); next(made)
        self.assertEqual(next(made), 1)
    def test_async(self): self.assertEqual(asyncio.run(hard.gather(1)), 1)
    def test_stream(self): self.assertEqual(asyncio.run(hard.consume(3)), 1)
    def test_class(self): self.assertEqual(hard.Child.make(1).area(scale=2), 1)
    def test_nested(self): self.assertEqual(hard.Child().nested(5), 1)
    def test_lambda(self): self.assertEqual(hard.double(4), 1)
    def test_made(self): self.assertEqual(hard.made(4), 1)
    def test_child(self): self.assertEqual(hard.child(4), 1)
    def test_managed(self):
        with hard.managed(3) as n: self.assertEqual(n, 1)
    def test_cause(self): hard.reraises(3)
    def test_swallows(self): self.assertEqual(hard.swallows(3), 1)
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertEqual(hard.loop(i), 0)
    def test_tracer(self):
        before = sys.gettrace()
        sys.settrace(lambda *a: None)
        hard.loop(3)
        sys.settrace(before)
        self.fail()
    def test_freed(self):
        one = hard.Base()
        ref = weakref.ref(one)
        hard.take(one)
        del one
        self.assertIsNone(ref())
        self.fail("freed")
    def test_lazy(self):
        hard.take(hard.Lazy())
        self.assertEqual(hard.Lazy.touched, [])
        self.fail()
    def test_clock(self):
        with unittest.mock.patch.multiple(time, perf_counter=None, process_time=None):
            found = hard.loop(3)
        self.assertEqual(found, 1)
    def test_alarm(self):
        def stop(*_):
            raise TimeoutError
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with self.assertRaises(TimeoutError): hard.busy()
        finally:
            signal.signal(signal.SIGALRM, before)
        self.fail("stopped")
    def test_many(self):
        for n in range(2000):
            hard.take(n)
        self.fail()
    def test_green(self): self.assertEqual(hard.loop(3), 3)
"""
