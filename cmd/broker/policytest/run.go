package policytest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/schema"
)

// A Result is the outcome of one case.
type Result struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Want and Got are the differences of the first step that differs, one a line.
	Want []string `json:"want"`
	Got  []string `json:"got"`
	// Step is the number of that step, from 1; 0: no step differs, or the case has only one.
	Step int `json:"step,omitzero"`
}

// Run runs the cases of a file, several at a time, and returns their results in order.
func Run(ctx context.Context, e *Engine, f *File, atOnce int) ([]Result, error) {
	for i := range f.Cases {
		if err := e.checkNames(&f.Cases[i]); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(f.Cases))
	var all errgroup.Group
	all.SetLimit(max(atOnce, 1))
	for i := range f.Cases {
		all.Go(func() error {
			results[i] = e.run(ctx, &f.Cases[i])
			return nil
		})
	}
	return results, all.Wait()
}

// checkNames returns an error for a name that no hook has, because such a case would check nothing.
func (e *Engine) checkNames(c *Case) error {
	check := func(key, name string) error {
		for i := range e.config.Hooks {
			if name == e.config.Hooks[i].Name {
				return nil
			}
		}
		return fmt.Errorf("%s:%d: the case %q has %s: %s, but no hook has this name; the hooks are %s", c.file, c.line, c.Name, key, name, e.Names())
	}
	for name := range c.Hooks {
		if err := check("hooks", name); err != nil {
			return err
		}
	}
	for i := range c.Steps {
		x := &c.Steps[i].Expect
		for key, names := range map[string][]string{"asked": x.Asked, "not_asked": x.NotAsked, "by": {x.By}} {
			for _, name := range names {
				if name == "" {
					continue
				}
				if err := check(key, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// run runs one case.
func (e *Engine) run(ctx context.Context, c *Case) Result {
	r := Result{Name: c.Name, OK: true, File: c.file, Line: c.line, Want: []string{}, Got: []string{}}
	for i := range c.Steps {
		routing, body, err := c.Steps[i].request()
		if err != nil {
			r.OK, r.Got = false, []string{err.Error()}
			return r
		}
		v := e.Verdict(ctx, routing, body, c.Hooks)
		if r.Want, r.Got = c.Steps[i].Expect.compare(&v); len(r.Want) > 0 {
			if r.OK = false; len(c.Steps) > 1 {
				r.Step = i + 1
			}
			return r
		}
	}
	return r
}

// compare returns what a verdict should have and what it has instead, where they differ.
func (x *Expect) compare(v *schema.Verdict) (want, got []string) {
	want, got = []string{}, []string{}
	differ := func(w, g string) { want, got = append(want, w), append(got, g) }
	if !x.decides(v.Decision) {
		differ("decision: "+string(x.Decision), strings.TrimSuffix(fmt.Sprintf("decision: %s (%s)", v.Decision, v.Reason), " ()"))
	}
	if x.By != "" && !slices.Contains(deciders(v), x.By) {
		differ("by: "+x.By, "by: "+strings.Join(deciders(v), ", "))
	}
	if m, err := matcher(x.Reason); err == nil && !m(v.Reason) {
		differ("reason: "+x.Reason, "reason: "+v.Reason)
	}
	for _, u := range []struct {
		name      string
		want, got jsontext.Value
	}{{"updated_input", x.UpdatedInput, v.UpdatedInput}, {"updated_output", x.UpdatedOutput, v.UpdatedOutput}} {
		if len(u.want) > 0 && !same(u.want, u.got) {
			differ(u.name+": "+string(u.want), u.name+": "+string(u.got))
		}
	}
	asked := ran(v)
	for _, name := range x.Asked {
		if !slices.Contains(asked, name) {
			differ("asked: "+name, "asked: "+strings.Join(asked, ", "))
		}
	}
	for _, name := range x.NotAsked {
		if slices.Contains(asked, name) {
			differ("not_asked: "+name, "asked: "+strings.Join(asked, ", "))
		}
	}
	contents := make([]string, len(v.Injections))
	for i := range v.Injections {
		contents[i] = v.Injections[i].Content
	}
	for _, list := range []struct {
		name      string
		want, got []string
	}{{"hook_errors", x.HookErrors, v.HookErrors}, {"injections", x.Injections, contents}} {
		for _, part := range list.want {
			if !slices.ContainsFunc(list.got, func(s string) bool { return strings.Contains(s, part) }) {
				differ(list.name+": "+part, list.name+": "+strings.Join(list.got, "; "))
			}
		}
	}
	return want, got
}

// decides reports whether a decision is the expected one.
func (x *Expect) decides(d schema.Decision) bool {
	return x.Decision == schema.None || x.Decision == d || x.Decision == schema.Continue && d == schema.Allow
}

// deciders returns the hooks with the decision of the verdict.
func deciders(v *schema.Verdict) (names []string) {
	for i := range v.ExecutedHooks {
		if x := &v.ExecutedHooks[i]; x.Decision == v.Decision && x.Decision != schema.None {
			names = append(names, x.Hook)
		}
	}
	return names
}

// ran returns the hooks that were asked.
func ran(v *schema.Verdict) (names []string) {
	for i := range v.ExecutedHooks {
		names = append(names, v.ExecutedHooks[i].Hook)
	}
	return names
}

// matcher returns the function for an expected text: a part of it, or a pattern between slashes.
func matcher(want string) (func(string) bool, error) {
	if len(want) > 1 && strings.HasPrefix(want, "/") && strings.HasSuffix(want, "/") {
		p, err := regexp.Compile(want[1 : len(want)-1])
		if err != nil {
			return nil, fmt.Errorf("the pattern %s: %w", want, err)
		}
		return p.MatchString, nil
	}
	return func(s string) bool { return strings.Contains(s, want) }, nil
}

// same reports whether two values are the same JSON.
func same(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return len(b) > 0 && a.Canonicalize() == nil && b.Canonicalize() == nil && string(a) == string(b)
}
