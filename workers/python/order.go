package python

import (
	"cmp"
	_ "embed" // the sources of the Python side
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// The sources of the Python side. The worker sends them to each host through its pipe, so
// that it needs no temporary files.
var (
	//go:embed hookfabric/_bootstrap.py
	bootstrap string
	//go:embed hookfabric/_host.py
	hostSource string
	//go:embed hookfabric/__init__.py
	wordsSource string
	//go:embed hookfabric/_loop.py
	loopSource string
	//go:embed massgen/mcp_tools/hooks.py
	massgenSource string
	//go:embed massgen/mcp_tools/_builtins.py
	massgenBuiltins string
)

// beginning is the first request to a host.
type beginning struct {
	Dirs      []string  `json:"dirs"`
	Memory    int64     `json:"memory"`
	Most      int       `json:"most"`
	Words     string    `json:"words"`
	Loop      string    `json:"loop"`
	Massgen   string    `json:"massgen"`
	Builtins  string    `json:"massgen_builtins"`
	Functions []loading `json:"functions"`
}

// loading asks a host to import a function, which later requests name by its number.
type loading struct {
	Number  uint32 `json:"load"`
	Handler string `json:"handler"`
}

// calling returns the request to call a function with an event. c is the position in a
// trace; nil means no trace.
func calling(f *function, event []byte, c *trace.Context) [][]byte {
	head := strconv.AppendUint([]byte(`{"call":`), uint64(f.number), 10)
	if c != nil {
		head = c.AppendParent(append(head, `,"trace":["`...))
		state, _ := jsontext.AppendQuote([]byte(`",`), c.State) // of ASCII only
		head = append(append(head, state...), ']')
	}
	return [][]byte{append(head, `,"event":`...), event, []byte("}")}
}

// The requests to cancel a coroutine, and to answer at once.
const (
	cancelling = `{"cancel":true}`
	pinging    = `{}`
)

// answer is a host's answer to a request.
type answer struct {
	Result    jsontext.Value `json:"result"`
	Error     string         `json:"error"`
	Raised    bool           `json:"raised"`
	Traceback string         `json:"traceback"`
	Noted     string         `json:"noted"` // the error of its condition
	Doubt     string         `json:"doubt"` // the traceback of that error
	Spent     bool           `json:"spent"` // its host must be replaced
	Async     bool           `json:"async"`
	Loaded    []uint32       `json:"loaded"`

	lost error // why there is no answer
}

// fault returns the error in an answer, or nil.
func (a *answer) fault() error {
	switch {
	case a.lost != nil:
		return a.lost
	case a.Error == "":
		return nil
	case a.Raised:
		return fmt.Errorf("raised %s", a.Error)
	}
	return errors.New(a.Error)
}

// besides returns the error of the condition as an addition to another error.
func (a *answer) besides() string {
	if a.Noted == "" {
		return ""
	}
	return "; " + a.Noted
}

// maxShared is how many coroutines share a host.
const maxShared = 64

// fewShared is the number of coroutines in a host from which on the next one uses an
// idle host, within the configured number of hosts.
const fewShared = 8

// pick seats c in the best host for it, or returns nil if no host is free.
func (p *pool) pick(c *call) *host {
	var best *host
	if !c.alone {
		best = p.pickShared(c.function)
	}
	if best == nil {
		best = p.pickIdle(c.function)
	}
	if best == nil {
		return nil
	}
	// During the import of the function, the host can do nothing else.
	if !best.knows[c.function.number] {
		c.alone = true
	}
	if best.alone = c.alone; !c.alone {
		best.shared++
	}
	best.calls++
	if n := p.site.limits.Recycle; n > 0 && best.calls >= n && !best.old {
		best.old = true
		p.grow()
	}
	return best
}

// pickIdle returns the idle host that suits f best, and the oldest of equals, so that hosts
// that are not needed stay idle.
func (p *pool) pickIdle(f *function) (best *host) {
	rank := func(h *host) int {
		switch {
		case h.old:
			return 1
		case !h.knows[f.number]:
			return 2
		}
		return 3
	}
	for _, h := range p.hosts {
		if h.idle() && (best == nil || rank(h) > rank(best)) {
			best = h
		}
	}
	return best
}

// pickShared returns the host with the fewest coroutines that f can share, or an idle one
// if that is better. It returns nil if there is neither.
func (p *pool) pickShared(f *function) (best *host) {
	sharing := p.count(func(h *host) bool { return h.shared > 0 })
	for _, h := range p.hosts {
		if h.shared == 0 || h.shared >= maxShared || h.old || !h.knows[f.number] {
			continue
		}
		if best == nil || h.shared < best.shared {
			best = h
		}
	}
	if best != nil && best.shared >= fewShared && sharing < p.site.limits.Hosts {
		if h := p.pickIdle(f); h != nil && h.knows[f.number] {
			return h
		}
	}
	return best
}

// The defaults of the configuration.
const (
	defaultInterpreter = "python3"
	defaultHosts       = 2
	defaultMemory      = 1 << 30
)

// site has all properties by which hosts differ. Hosts of one site are interchangeable.
type site struct {
	interpreter string
	dirs        []string
	workdir     string
	env         []string
	limits      schema.PythonHosts // with the defaults filled in
}

func newSite(environ []string, h schema.Hook, at workers.Site) (s site, err error) {
	s = site{dirs: child.Absolute(at.Dirs), limits: at.Python, workdir: "/"}
	if s.env, err = child.Environ(environ, h.Env); err != nil {
		return site{}, err
	}
	s.limits.Interpreter = cmp.Or(s.limits.Interpreter, defaultInterpreter)
	if s.limits.Hosts <= 0 {
		s.limits.Hosts = defaultHosts
	}
	if s.limits.Memory <= 0 {
		s.limits.Memory = defaultMemory
	}
	l := child.Lookup{Dirs: s.dirs, Path: child.Value(s.env, "PATH")}
	if dir := l.Workdir(); dir != "" {
		s.workdir = dir
	}
	if !strings.Contains(s.limits.Interpreter, "/") {
		l.Dirs = nil // a name is looked up in PATH, not beside the hooks
	}
	if s.interpreter, err = l.Find(s.limits.Interpreter); err != nil {
		return site{}, fmt.Errorf("the interpreter of python hooks: %w; install Python 3.9 or later, or name its program in the configuration: python: {interpreter: …}", err)
	}
	return s, nil
}

// key returns the same text for sites that can share their hosts.
func (s *site) key() string {
	return fmt.Sprintf("%q %q %q %+v", s.interpreter, s.dirs, s.env, s.limits)
}

// places names the folders of modules, for an error.
func (s *site) places() string {
	own := "where " + s.interpreter + " looks"
	if len(s.dirs) == 0 {
		return own
	}
	return strings.Join(s.dirs, ", ") + ", and " + own
}

// most returns the largest number of hosts while some are slow.
func (s *site) most() int {
	return max(s.limits.Hosts, min(16*s.limits.Hosts, 64))
}
