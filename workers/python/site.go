package python

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/child"
)

// What a configuration leaves open.
const (
	defaultInterpreter = "python3"
	defaultHosts       = 2
	defaultMemory      = 1 << 30
)

// site is all by which hosts differ: those of one site are interchangeable.
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
	if s.limits.Interpreter == "" {
		s.limits.Interpreter = defaultInterpreter
	}
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
		l.Dirs = nil // a name is a program's of the machine, not one beside the hooks
	}
	if s.interpreter, err = l.Find(s.limits.Interpreter); err != nil {
		return site{}, fmt.Errorf("the interpreter of python hooks: %w; install Python 3.9 or later there, or name its program as python: {interpreter: …}", err)
	}
	return s, nil
}

// key is the same for sites that can share their hosts.
func (s *site) key() string {
	return fmt.Sprintf("%q %q %q %+v", s.interpreter, s.dirs, s.env, s.limits)
}

// places are where modules are looked for, for a sentence.
func (s *site) places() string {
	own := "where " + s.interpreter + " looks"
	if len(s.dirs) == 0 {
		return own
	}
	return strings.Join(s.dirs, ", ") + ", and " + own
}

// most is how many hosts there may be while some are held up.
func (s *site) most() int {
	return max(s.limits.Hosts, min(16*s.limits.Hosts, 64))
}
