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
	// guardStarts limits how often a watchdog that ends early is restarted.
	guardStarts = 5
	// guardWait is the time limit for the watchdog to read a line.
	guardWait = time.Second
)

// A Guard is the worker's side of the watchdog, which it starts with the first process.
// Without a command line it does nothing.
type Guard struct {
	argv []string
	log  *slog.Logger

	mu     sync.Mutex // guards the fields below
	groups map[int]struct{}
	dog    *os.Process
	pipe   *os.File
	starts int
}

// NewGuard makes a Guard for the processes of one runner. Argv is the command line of a
// program that calls [RunWatchdog], see [SelfWatchdog]. If it is empty and the worker is
// killed, the kernel kills the processes (Linux only), but not the processes that they
// started.
func NewGuard(argv []string, log *slog.Logger) *Guard {
	return &Guard{argv: argv, log: log, groups: make(map[int]struct{})}
}

// wake starts the watchdog if it does not run.
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

// add makes the watchdog watch a group. It is called before the process gets its input,
// so that a process which reads its input before it starts others is always watched.
// Until then the kernel watches it.
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

// remove stops the watch of a group, before its number can be reused.
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

// begin starts a watchdog and makes it watch all running groups.
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

// complain logs that the watchdog does not work, and the consequence.
func (g *Guard) complain(what string) {
	g.log.Error("the watchdog "+what+"; without it, processes of hooks can outlive a killed worker",
		"argv", g.argv, "starts", g.starts, "starts_at_most", guardStarts)
}

// spawn starts the watchdog in a session of its own, so that a signal to the worker's
// group does not end it.
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

// tell writes one line, and reports whether the watchdog accepted it.
func (g *Guard) tell(verb byte, pgid int) bool {
	line := append(strconv.AppendInt([]byte{verb}, int64(pgid), 10), '\n')
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardWait))
	_, err := g.pipe.Write(line)
	return err == nil
}

// drop ends a watchdog that does not read.
func (g *Guard) drop() {
	if g.dog != nil {
		g.complain("does not read")
		g.end()
	}
}

// end ends the watchdog. It kills it before it closes its pipe, because a running
// watchdog would take that for the worker's end.
func (g *Guard) end() {
	_ = g.dog.Kill()
	_, _ = g.dog.Wait()
	_ = g.pipe.Close()
	g.dog = nil
}

// Close ends the watchdog. No process may be left to watch.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starts = guardStarts
	if g.dog != nil {
		g.end()
	}
}
