// Package probe finds out what is installed on this machine: which agent
// runtimes, and of which version. That takes the start of a process per runtime,
// far too long for a hook, so it is done when hooks are installed or examined.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// A Version is three numbers; the zero Version is unknown.
type Version [3]int

// Known reports whether v says anything.
func (v Version) Known() bool { return v != Version{} }

// Before reports whether v is older than w, or unknown.
func (v Version) Before(w Version) bool {
	return !v.Known() || cmp.Or(cmp.Compare(v[0], w[0]), cmp.Compare(v[1], w[1]), cmp.Compare(v[2], w[2])) < 0
}

func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// versionForm is compiled when it is needed: a hook, which starts once per call,
// needs none.
var versionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d{1,9})\.(\d{1,9})\.(\d{1,9})`) })

// ParseVersion finds the version in what a program says of itself.
func ParseVersion(text string) (v Version, ok bool) {
	m := versionForm().FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // at most nine digits
	}
	return v, v.Known()
}

// Find is where a program is; empty: not on the PATH.
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// versionTime is how long a program may take to say its version: some start a
// whole JavaScript engine for it.
const versionTime = 20 * time.Second

// VersionOf asks a program for its version; unknown: it is not there, or does
// not say.
func VersionOf(ctx context.Context, program string) Version {
	path, err := exec.LookPath(program)
	if err != nil {
		return Version{}
	}
	r, err := Run(ctx, Command{Path: path, Args: []string{"--version"}, Timeout: versionTime})
	if err != nil {
		return Version{}
	}
	v, _ := ParseVersion(string(r.Stdout))
	return v
}
