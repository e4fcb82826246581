package child

import (
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// guardStarts bounds how often a watchdog that ends early is started again.
	guardStarts = 5
	// guardWait is how long the watchdog may take to read a line.
	guardWait = time.Second
)

// A Guard is the worker's end of the watchdog, which it starts with the first
// process. Without a command line it does nothing.
type Guard struct {
	argv []string
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	groups map[int]struct{}
	dog    *os.Process
	pipe   *os.File
	starts int
}

// NewGuard makes a Guard over the processes of one runner. Argv is the command
// line of a program that calls [WatchdogMain], see [SelfWatchdog]. Empty: when
// the worker is killed, the kernel kills the processes (Linux only), but nobody
// what those have started.
func NewGuard(argv []string, log *slog.Logger) *Guard {
	return &Guard{argv: argv, log: log, groups: make(map[int]struct{})}
}

// wake sees to it that there is a watchdog, before there is something to watch.
func (g *Guard) wake() {
	if len(g.argv) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dog == nil && g.starts < guardStarts {
		g.begin()
	}
}

// add tells the watchdog of a group that must not outlive the worker. It comes
// before the process gets its input: one that reads that before it starts
// others is watched from then on, and the kernel watches it until then.
func (g *Guard) add(pgid int) {
	if len(g.argv) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[pgid] = struct{}{}
	if g.dog == nil || g.tell('+', pgid) {
		return
	}
	g.drop()
	if g.starts < guardStarts {
		g.begin()
	}
}

// remove tells the watchdog that a group is gone, before its number can be
// given to another one.
func (g *Guard) remove(pgid int) {
	if len(g.argv) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, pgid)
	if g.dog != nil && !g.tell('-', pgid) {
		g.drop()
	}
}

// begin starts a watchdog and tells it all that is running.
func (g *Guard) begin() {
	g.starts++
	if err := g.spawn(); err != nil {
		g.complain("cannot be started: " + err.Error())
		return
	}
	for pgid := range g.groups {
		if !g.tell('+', pgid) {
			g.drop()
			return
		}
	}
}

// complain says that the watchdog is not there as it should be, and what that means.
func (g *Guard) complain(what string) {
	g.log.Error("the watchdog "+what+"; without it, processes of hooks can outlive a killed worker",
		"argv", g.argv, "starts", g.starts, "starts_at_most", guardStarts)
}

// spawn starts the watchdog in a session of its own, so that what a terminal
// or a supervisor sends to the worker's group does not end it before its time.
func (g *Guard) spawn() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = w.Close()
		return err
	}
	defer null.Close()
	g.dog, err = os.StartProcess(g.argv[0], g.argv, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{r, null, null},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		g.dog = nil
		_ = w.Close()
		return err
	}
	g.pipe = w
	return nil
}

// tell writes one line, and reports whether the watchdog could take it.
func (g *Guard) tell(verb byte, pgid int) bool {
	line := append(strconv.AppendInt([]byte{verb}, int64(pgid), 10), '\n')
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardWait))
	_, err := g.pipe.Write(line)
	return err == nil
}

// drop ends a watchdog that does not read any more.
func (g *Guard) drop() {
	if g.dog != nil {
		g.complain("does not read")
		g.end()
	}
}

// end ends the watchdog. It is killed before its pipe is closed: to a living
// one that would say that the worker is gone.
func (g *Guard) end() {
	_ = g.dog.Kill()
	_, _ = g.dog.Wait()
	_ = g.pipe.Close()
	g.dog = nil
}

// Close ends the watchdog for good. By now it has nothing left to watch.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starts = guardStarts
	if g.dog != nil {
		g.end()
	}
}
