package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// maxUses is how many files of one call are judged. Each costs some looks at the disk.
const maxUses = 1000

// pathOptions are the options of "path_permission". A root is a folder or file,
// with all that is below it.
type pathOptions struct {
	// Allow are the roots that tools may touch; absent: every path that the
	// others do not speak of.
	Allow []string `json:"allow"`
	// Deny are the roots that no tool may touch, also inside of others.
	Deny []string `json:"deny"`
	// ReadOnly are the roots that tools may read and not change. Of a root to
	// read and one to allow, the one deeper down counts.
	ReadOnly []string `json:"read_only"`
	// Base is where relative roots begin; empty: in the agent's working
	// directory, as its event says.
	Base string `json:"base"`
	// Follow false refuses paths that lead through a symbolic link; absent or
	// true: links are followed, and where they lead is judged.
	Follow *bool `json:"follow"`
	// Shell is what is said about shell commands, whose paths nobody can tell:
	// allow (the default), which is no opinion, or deny. Patches inside of them
	// are judged all the same.
	Shell string `json:"shell"`
}

// newPathPermission makes the hook "path_permission": it refuses tool calls
// that touch files outside of what is allowed, and those that it cannot judge
// although their tool touches files. About all others it has no opinion.
//
// It judges the call as it is asked about, on the machine of the worker: that
// must see the files as the agent does. It is no sandbox: a link that is made
// between the question and the call is not seen, and a hard link only if it is
// one to a root.
func newPathPermission(h schema.Hook) (workers.Handler, error) {
	o, err := options[pathOptions](h)
	if err != nil {
		return nil, err
	}
	roots := slices.Concat(o.Allow, o.Deny, o.ReadOnly)
	switch {
	case h.Event != schema.PreToolUse:
		return nil, fmt.Errorf("%q checks tool calls before they run; put it under PreToolUse, not under %s", h.Handler, h.Event)
	case len(roots) == 0:
		return nil, fmt.Errorf("%q names no root folder; write folders into its options allow, deny or read_only", h.Handler)
	case o.Base != "" && !filepath.IsAbs(o.Base):
		return nil, fmt.Errorf("the option \"base\" of %q is %q; write an absolute path", h.Handler, o.Base)
	case o.Shell != "" && o.Shell != "allow" && o.Shell != "deny":
		return nil, fmt.Errorf("the option \"shell\" of %q is %q; write allow or deny", h.Handler, o.Shell)
	}
	for _, root := range roots {
		if why := unreadable(root); why != "" {
			return nil, fmt.Errorf("the root %q of %q %s; write a path such as /srv/project or ./src", root, h.Handler, why)
		}
	}
	p := &pathPermission{pathOptions: o, follow: o.Follow == nil || *o.Follow}
	return workers.HandlerFunc(p.handle), nil
}

// pathPermission judges the paths of tool calls.
type pathPermission struct {
	pathOptions
	follow bool
}

// handle refuses e, or has no opinion.
func (p *pathPermission) handle(_ context.Context, e *schema.Event) (schema.Result, error) {
	if err := p.refusal(e); err != nil {
		return schema.Denied(fmt.Sprintf("%s is denied: %v", e.ToolName, err)), nil
	}
	return schema.Result{}, nil
}

// refusal is why a call is refused; nil: it is not.
func (p *pathPermission) refusal(e *schema.Event) error {
	u, err := usesOf(e)
	switch {
	case err != nil:
		return err
	case u.shell && p.Shell == "deny":
		return errors.New("shell commands are not allowed here, because the hook cannot tell which files they touch; use the file tools")
	case len(u.uses) == 0:
		return nil
	case len(u.uses) > maxUses:
		return fmt.Errorf("it names too many files; the limit is %d per call; use several calls", maxUses)
	}
	r, err := p.rules(e)
	if err != nil {
		return err
	}
	for _, use := range u.uses {
		if err := r.judge(use, orElse(e.Cwd, p.Base)); err != nil {
			return err
		}
	}
	return nil
}

// rules are the roots as they are at one call.
type rules struct {
	allow, deny, readOnly []root
	follow                bool
}

func (p *pathPermission) rules(e *schema.Event) (*rules, error) {
	base := orElse(p.Base, e.Cwd)
	allow, err1 := rootsAt(p.Allow, base)
	deny, err2 := rootsAt(p.Deny, base)
	readOnly, err3 := rootsAt(p.ReadOnly, base)
	return &rules{allow, deny, readOnly, p.follow}, cmp.Or(err1, err2, err3)
}

// judge returns why a tool may not use a path, or nil.
func (r *rules) judge(use pathUse, cwd string) error {
	path, places, linked, err := use.places(cwd)
	if err != nil {
		if _, view := errors.AsType[viewError](err); use.guess && !view {
			return nil
		}
		return err
	}
	name := place{path: filepath.Clean(path)}
	if linked && !r.follow && !r.straight(name, places) {
		return fmt.Errorf("the path %q leads through a symbolic link", use.path)
	}
	// What is denied by its name is denied wherever that leads.
	if err := r.judgeDenied(use, name); err != nil {
		return err
	}
	for _, place := range places {
		if err := cmp.Or(r.judgeDenied(use, place), r.judgeAllowed(use, place)); err != nil {
			return err
		}
	}
	return r.judgeMatches(use, path)
}

// straight reports whether a name leads to all places without a link below a
// root. A link above it is not the agent's.
func (r *rules) straight(name place, places []place) bool {
	return slices.ContainsFunc(slices.Concat(r.allow, r.readOnly), func(root root) bool {
		rest, ok := strings.CutPrefix(name.path, strings.TrimRight(root.named, "/"))
		return ok && below(name.path, root.named) && !slices.ContainsFunc(places, func(p place) bool {
			return p.path != filepath.Join(root.path, rest)
		})
	})
}

// judgeDenied returns why a place is denied, or nil.
func (r *rules) judgeDenied(use pathUse, p place) error {
	for i := range r.deny {
		if root := &r.deny[i]; p.within(root.place) || p.mayBe(root) {
			return fmt.Errorf("%s is in %s, which is not allowed", p, root.written)
		}
	}
	if use.write {
		for i := range r.readOnly {
			if root := &r.readOnly[i]; !p.within(root.place) && p.mayBe(root) {
				return fmt.Errorf("%s may be in %s, which is read-only", p, root.written)
			}
		}
	}
	if !use.deep {
		return nil
	}
	for _, root := range slices.Concat(r.deny, r.readOnly) {
		if root.within(p) && !p.within(root.place) && (use.write || slices.ContainsFunc(r.deny, root.same)) {
			return fmt.Errorf("%s contains %s, which is not allowed for this call; name the other files one by one", p, root.written)
		}
	}
	return nil
}

// judgeAllowed returns why a place that is not denied is not allowed either, or
// nil. What a path only may mean need not be allowed.
func (r *rules) judgeAllowed(use pathUse, p place) error {
	allowed, readable := deepest(r.allow, p), deepest(r.readOnly, p)
	switch {
	case readable > 0 && readable >= allowed:
		if use.write {
			return fmt.Errorf("%s is read-only", p)
		}
	case allowed == 0 && len(r.allow) > 0 && !use.doubtful:
		return fmt.Errorf("%s is outside the allowed folders: %s", p, r.listed(use.write))
	}
	return nil
}

// listed names the roots that a tool may use.
func (r *rules) listed(write bool) string {
	var names []string
	for _, root := range r.allow {
		names = append(names, root.written)
	}
	if !write {
		for _, root := range r.readOnly {
			names = append(names, root.written+" (to read)")
		}
	}
	return strings.Join(names, ", ")
}
