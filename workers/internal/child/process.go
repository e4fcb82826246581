package child

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/bus/proctree"
)

// A Spec describes a process to start.
type Spec struct {
	Argv []string
	Dir  string
	// Env is its whole environment.
	Env []string
	// Files are its open files, from its standard input on. The caller closes its own.
	Files []*os.File
}

// A Process is a running process that leads its group. Its pid is reserved until it is
// reaped. The group is only killed before that, because another process may get the
// number afterwards.
type Process struct {
	leader leader
	guard  *Guard
	mark   string // in its environment, and that of all its descendants
	exited chan struct{}
}

// Start starts a process that g watches. The caller must reap it.
func Start(g *Guard, s Spec) (*Process, error) {
	p := &Process{guard: g, mark: proctree.NewMark(), exited: make(chan struct{})}
	attr := &os.ProcAttr{Dir: s.Dir, Env: append(slices.Clone(s.Env), p.mark), Files: s.Files, Sys: groupAttr()}
	started := make(chan error)
	go p.own(s.Argv, attr, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// own starts the process and waits for its end on one thread. The kernel kills the
// process when that thread ends, not when the worker does, so the thread must do nothing
// else and outlive the process.
func (p *Process) own(argv []string, attr *os.ProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.guard.announce(p.mark)
	var err error
	p.leader.Process, err = os.StartProcess(argv[0], argv, attr)
	if err != nil {
		p.guard.forget(p.mark)
		started <- err
		return
	}
	p.guard.add(p.leader.Pid, p.mark)
	started <- nil
	p.leader.await()
	close(p.exited)
}

// Pid returns the number of the process and of its group.
func (p *Process) Pid() int { return p.leader.Pid }

// Exited is closed when the process has ended and is not reaped yet.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill kills the group, and the leader even if it has left its group. Do not call it
// after Reap.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.leader.Pid, syscall.SIGKILL)
	_ = p.leader.Kill()
}

// KillAll is [Process.Kill], and on Linux also kills descendants in other groups and
// sessions. It reads all processes of the system, so use it only for a process that did
// not end in time.
func (p *Process) KillAll() {
	proctree.Kill(p.leader.Pid, p.mark, p.Kill)
}

// Reap waits for the end of the process and returns how it ended.
func (p *Process) Reap() (*os.ProcessState, error) {
	<-p.exited
	p.guard.remove(p.leader.Pid)
	return p.leader.reap()
}

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
	marks  map[string]struct{} // of processes whose group is not known yet
	dog    *os.Process
	pipe   *os.File
	starts int
}

// NewGuard makes a Guard for the processes of one runner. Argv is the command line of a
// program that calls [RunWatchdog], see [SelfWatchdog]. If it is empty and the worker is
// killed, the kernel kills the processes (Linux only), but not the processes that they
// started.
func NewGuard(argv []string, log *slog.Logger) *Guard {
	return &Guard{argv: argv, log: log, groups: make(map[int]struct{}), marks: make(map[string]struct{})}
}

// announce makes the watchdog look for a process that is about to start, by its mark, and
// starts the watchdog if it does not run. The process may start others before its group is
// known.
func (g *Guard) announce(mark string) {
	g.change(func() bool {
		g.marks[mark] = struct{}{}
		return g.dog != nil && g.tell('?', mark)
	})
}

// add makes the watchdog watch the group of an announced process.
func (g *Guard) add(pgid int, mark string) {
	g.change(func() bool {
		g.groups[pgid] = struct{}{}
		delete(g.marks, mark)
		return g.dog != nil && g.tell('+', strconv.Itoa(pgid)) && g.tell('!', mark)
	})
}

// change changes what is watched, and starts the watchdog if it does not run or read.
func (g *Guard) change(tell func() bool) {
	if len(g.argv) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if tell() {
		return
	}
	g.drop()
	if g.starts < guardStarts {
		g.begin()
	}
}

// forget ends the search for an announced process that did not start.
func (g *Guard) forget(mark string) {
	if len(g.argv) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.marks, mark)
	if g.dog != nil && !g.tell('!', mark) {
		g.drop()
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
	if g.dog != nil && !g.tell('-', strconv.Itoa(pgid)) {
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
		if !g.tell('+', strconv.Itoa(pgid)) {
			g.drop()
			return
		}
	}
	for mark := range g.marks {
		if !g.tell('?', mark) {
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
func (g *Guard) tell(verb byte, what string) bool {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardWait))
	_, err := g.pipe.WriteString(string(verb) + what + "\n")
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

const (
	// KeptTail is the size of a [Tail].
	KeptTail = 64 << 10
	// lastWords is how much of a failed process's output is in its error.
	lastWords = 1 << 10
)

// A Tail keeps the last KeptTail bytes written to it.
type Tail struct{ data []byte }

func (t *Tail) Write(b []byte) (int, error) {
	t.data = append(t.data, b...)
	if len(t.data) > 2*KeptTail {
		t.data = append(t.data[:0], t.Bytes()...)
	}
	return len(b), nil
}

// Bytes returns the last bytes.
func (t *Tail) Bytes() []byte {
	return t.data[max(0, len(t.data)-KeptTail):]
}

// LastWords returns the end of a failed process's output, from the start of a line, as an
// addition to a sentence.
func LastWords(output []byte) string {
	s := Readable(output)
	if len(s) > lastWords {
		s = s[len(s)-lastWords:]
		if _, line, more := strings.Cut(s, "\n"); more {
			s = line
		}
		s = "… " + strings.ToValidUTF8(s, "")
	}
	if s == "" {
		return ""
	}
	return ": " + s
}

// Readable returns output as text to show.
func Readable(b []byte) string {
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

// OnlyReader hides a file's other methods, so that io.Copy does the copying.
type OnlyReader struct{ io.Reader }

// CloseAll closes files and ignores errors.
func CloseAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

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
	watch(stdin, func(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }, proctree.KillMarked)
	return 0
}

// watch tracks the groups and the announced processes, and kills the remaining ones. A line is a
// plus or a minus and the group's number, or ? or ! and the mark of a process that is about to
// start, and that is known or did not start. Numbers that mean several groups (0, 1), and malformed
// lines, are skipped.
func watch(stdin io.Reader, kill func(pgid int), killMarked func(mark string)) {
	groups, marks := make(map[int]struct{}), make(map[string]struct{})
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		line, number := lines.Text(), 0
		if len(line) > 1 {
			number, _ = strconv.Atoi(line[1:])
		}
		switch isMark := len(line) > 1 && strings.HasPrefix(line[1:], proctree.MarkName+"="); {
		case isMark && line[0] == '?':
			marks[line[1:]] = struct{}{}
		case isMark && line[0] == '!':
			delete(marks, line[1:])
		case number <= 1:
		case line[0] == '+':
			groups[number] = struct{}{}
		case line[0] == '-':
			delete(groups, number)
		}
	}
	for pgid := range groups {
		kill(pgid)
	}
	for mark := range marks {
		killMarked(mark)
	}
}
