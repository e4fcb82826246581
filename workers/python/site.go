package python

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

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
