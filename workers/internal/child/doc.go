// Package child starts processes that do not outlive their worker. It also finds programs,
// and prepares their environment. The runners of programs and of Python hosts share it.
//
// A process leads its own process group, and the worker kills the group as a whole. A
// process that leaves the group, for example with setsid, keeps running after a hook that
// answered. After a hook that missed its deadline, the worker kills such a process on Linux:
// it finds it as a descendant, or by [proctree.MarkName] in its environment. The process
// escapes if it has lost its parent and cleared its environment, and on other systems. If
// the worker itself is killed, the kernel kills the leader (Linux), and the watchdog kills
// the group, and a process that started just before by its mark: see [RunWatchdog].
package child
