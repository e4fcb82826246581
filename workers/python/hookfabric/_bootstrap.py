import os, sys
if sys.version_info < (3, 9):
    sys.exit("this is Python %d.%d; hooks need 3.9 or later" % sys.version_info[:2])
sys.path[:] = [p for p in sys.path if p]
sys.dont_write_bytecode = True
def take(n):
    b = b""
    while len(b) < n:
        more = os.read(3, n - len(b))
        if not more:
            os._exit(0)
        b += more
    return b
names = {"__name__": "hookfabric._host"}
exec(compile(take(int.from_bytes(take(8)[:4], "big")), "hookfabric/_host.py", "exec"), names)
names["Host"](3, 4).serve()
