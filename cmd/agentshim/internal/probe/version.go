// Package probe finds the agent runtimes of this machine and their versions. It starts one
// process per runtime. That takes too long for a hook, so only `install` and `doctor` use it.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Version is three numbers; the zero Version is unknown.
type Version [3]int

// Known reports whether the version is known.
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

// versionForm is compiled at its first use, because a hook does not need it.
var versionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d{1,9})\.(\d{1,9})\.(\d{1,9})`) })

// ParseVersion finds the version in a program's output.
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

// Find returns the path of a program; empty: it is not on the PATH.
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// versionTime limits how long a program, such as a JavaScript engine, takes to print its version.
const versionTime = 20 * time.Second

// VersionOf returns the version that a program prints; unknown: the program does not exist, or prints
// no version.
func VersionOf(ctx context.Context, program string) Version {
	v, _ := AskVersion(ctx, program)
	return v
}

// AskVersion is like VersionOf, and returns why the version is unknown. The error [exec.ErrNotFound]
// means that the program does not exist.
func AskVersion(ctx context.Context, program string) (Version, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return Version{}, err
	}
	r, err := Run(ctx, Command{Path: path, Args: []string{"--version"}, Timeout: versionTime})
	if err != nil {
		return Version{}, fmt.Errorf("'%s --version' failed: %w", path, err)
	}
	v, ok := ParseVersion(string(r.Stdout))
	if !ok {
		said := strings.Join(strings.Fields(string(append(r.Stdout, r.Stderr...))), " ")
		return Version{}, fmt.Errorf("'%s --version' ended with exit code %d and named no version: %.200q", path, r.Exit, said)
	}
	return v, nil
}
