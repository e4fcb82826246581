// Package child starts processes that do not outlive their worker, and finds
// the programs to start and the environment to start them in. It is what the
// runners of programs and of host processes share.
//
// A process leads a process group of its own, which is killed as a whole. Only
// a process that leaves the group, as setsid makes it, gets away. When the
// worker itself is killed, the kernel kills the leader (Linux), and the
// watchdog the group: see [WatchdogMain].
package child
