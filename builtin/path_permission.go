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

// maxUses is how many files of one call are checked. Each check accesses the disk several
// times.
const maxUses = 1000

// pathOptions are the options of "path_permission". A root is a file, or a folder with
// everything below it.
type pathOptions struct {
	// Allow are the roots that tools may use; absent: every path that the other options
	// do not name.
	Allow []string `json:"allow"`
	// Deny are the roots that no tool may use, also inside other roots.
	Deny []string `json:"deny"`
	// ReadOnly are the roots that tools may read and not change. If a path is inside this
	// and an allowed root, the deeper root counts.
	ReadOnly []string `json:"read_only"`
	// Base is the folder of relative roots; empty: the agent's working directory, as its
	// event reports it.
	Base string `json:"base"`
	// Follow false refuses paths that lead through a symbolic link; absent or true: links
	// are followed, and their target is checked.
	Follow *bool `json:"follow"`
	// Shell is the decision about shell commands, whose paths cannot be known: allow (the
	// default), which is no opinion, or deny. Patches inside them are always checked.
	Shell string `json:"shell"`
}

// newPathPermission makes the hook "path_permission": it refuses tool calls that use
// files outside the allowed roots, and calls of file tools whose paths it cannot
// determine. It has no opinion about other calls.
//
// It resolves paths on the worker's machine, which must see the same files as the agent.
// It is not a sandbox: it does not see links that are made after the check, and
// recognises hard links only to a root.
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

// pathPermission checks the paths of tool calls.
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

// refusal returns why a call is refused; nil: it is not.
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
		if err := r.judge(use, cmp.Or(e.Cwd, p.Base)); err != nil {
			return err
		}
	}
	return nil
}

// rules are the roots, resolved for one call.
type rules struct {
	allow, deny, readOnly []root
	follow                bool
}

func (p *pathPermission) rules(e *schema.Event) (*rules, error) {
	base := cmp.Or(p.Base, e.Cwd)
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
	// A name inside a denied root is denied even if it is a link to another place.
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

// straight reports whether a name leads to all places without a link below a root. Links
// above a root are not the agent's.
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

// judgeAllowed returns why a place that is not denied is not allowed, or nil. A doubtful
// meaning of a path need not be allowed.
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
