package child

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// WatchdogArg is the only argument with which a program is asked to be a
// watchdog: its main, before it does anything else, calls [WatchdogMain] then.
const WatchdogArg = "watchdog"

// SelfWatchdog is the command line that makes this very program the watchdog,
// for [NewGuard]; nil if it is not known where the program lies.
func SelfWatchdog() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, WatchdogArg}
}

// WatchdogMain is the watchdog: a process beside the worker that reads from
// stdin which process groups the worker's processes lead. When stdin ends the
// worker is gone, however that came, and it kills the groups that are left. The
// kernel could do so only for the leaders themselves, not for what those have
// started. It returns the exit code.
func WatchdogMain(stdin io.Reader) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	watch(stdin, func(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) })
	return 0
}

// watch keeps the books and kills what is left. A line is a plus or a minus
// and the group's number; numbers that would mean more than one group (0, 1)
// are passed over like any other junk.
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
