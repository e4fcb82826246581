package proctree

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// killRounds is how often Kill looks for processes that others started while they were being
// killed.
const killRounds = 8

// Kill ends a process and its group with kill, and the processes that it started in sessions of
// their own: its descendants, and those with its mark in their environment. The process is killed
// first: a hook whose child is gone might answer. Kill looks at all processes of the system; use it
// for a process that did not end as it should.
func Kill(pid int, mark string, kill func()) {
	all := descendants(pid, []byte(mark)) // before the processes lose their parents
	kill()
	for range killRounds {
		for _, p := range all {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		if all = descendants(pid, []byte(mark)); len(all) == 0 {
			return
		}
	}
}

// KillMarked ends all processes with a mark in their environment, and those below them.
func KillMarked(mark string) {
	const none = -1
	for range killRounds {
		all := descendants(none, []byte(mark))
		if len(all) == 0 {
			return
		}
		for _, p := range all {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
}

// descendants returns the processes below pid, and the marked ones with all below them, except
// those that have ended and were not reaped.
func descendants(pid int, mark []byte) (all []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	todo := []int{pid}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil || p == os.Getpid() {
			continue
		}
		parent, dead := parentOf(p)
		if dead {
			continue
		}
		children[parent] = append(children[parent], p)
		if env, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && bytes.Contains(env, mark) && p != pid {
			todo = append(todo, p)
		}
	}
	seen := map[int]bool{}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		if seen[p] {
			continue
		}
		seen[p] = true
		if p != pid {
			all = append(all, p)
		}
		todo = append(todo, children[p]...)
	}
	return all
}

// parentOf returns the parent of a process, and whether it has ended.
func parentOf(pid int) (parent int, dead bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, true
	}
	// The name in parentheses may have spaces and parentheses itself.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, true
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err != nil || fields[0][0] == 'Z' || fields[0][0] == 'X'
}
