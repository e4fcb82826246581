package child

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// watchdogArg is the only argument of a program that acts as a watchdog.
const watchdogArg = "watchdog"

// SelfWatchdog returns the command line that runs this program as the watchdog, for
// [NewGuard]; nil if the program's path is unknown. The program's main must call
// [RunWatchdog] before anything else.
func SelfWatchdog() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, watchdogArg}
}

// RunWatchdog runs the watchdog and exits, if args is the command line of [SelfWatchdog].
func RunWatchdog(args []string) {
	if len(args) == 2 && args[1] == watchdogArg {
		os.Exit(watchdogMain(os.Stdin))
	}
}

// watchdogMain runs the watchdog: a process beside the worker that reads from stdin which
// process groups the worker's processes lead. When stdin ends, the worker has ended for
// any reason, and the watchdog kills the remaining groups. The kernel could only kill the
// leaders, not their descendants. It returns the exit code.
func watchdogMain(stdin io.Reader) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	watch(stdin, func(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) })
	return 0
}

// watch tracks the groups and kills the remaining ones. A line is a plus or a minus and
// the group's number. Numbers that mean several groups (0, 1), and malformed lines, are
// skipped.
func watch(stdin io.Reader, kill func(pgid int)) {
	groups := make(map[int]struct{})
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		verb, number := lines.Text(), 0
		if len(verb) > 1 {
			number, _ = strconv.Atoi(verb[1:])
		}
		switch {
		case number <= 1:
		case verb[0] == '+':
			groups[number] = struct{}{}
		case verb[0] == '-':
			delete(groups, number)
		}
	}
	for pgid := range groups {
		kill(pgid)
	}
}
