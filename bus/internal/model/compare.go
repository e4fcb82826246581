package model

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Diff returns a sentence for each difference of a real verdict from the expected one. The fabric's
// own texts need not agree: an error counts by its hook, and a reason in the fabric's own words
// must only exist.
func (x Expectation) Diff(got schema.Verdict) []string {
	var d differ
	d.same("decision", spelled(x.Decision), spelled(got.Decision))
	if x.OwnWords {
		d.same("reason given", true, got.Reason != "")
	} else {
		d.same("reason", x.Reason, got.Reason)
	}
	d.same("auto_approve", x.AutoApprove, got.AutoApprove)
	d.same("updated_input", canonical(x.UpdatedInput), canonical(got.UpdatedInput))
	d.same("updated_output", canonical(x.UpdatedOutput), canonical(got.UpdatedOutput))
	d.same("value", canonical(x.Value), canonical(got.Value))
	d.same("effects", canonicals(x.Effects), canonicals(got.Effects))
	d.same("injections", slices.Concat(x.Injections), inOwnWords(x.Injections, got.Injections))
	d.same("executed_hooks", rows(x.ExecutedHooks), rows(got.ExecutedHooks))
	d.same("hook_errors by hook", blamed(x.HookErrors), blamed(got.HookErrors))
	d.same("config_version", x.ConfigVersion, got.ConfigVersion)
	return d
}

// DiffCalls returns a sentence for each difference of the hooks that really ran from the expected
// ones, and for each that saw another input. The order of got does not matter, because neighbours
// may run at the same time. A hook may have run more than once (a re-run). It must have run, unless
// its answer means that it was never reached: those hooks are in unreached.
func (x Expectation) DiffCalls(got []Call, unreached ...string) []string {
	var d differ
	may := slices.Concat(x.Calls, x.Beside)
	for _, c := range got {
		i := slices.IndexFunc(may, func(m Call) bool { return m.Hook == c.Hook })
		if i < 0 {
			d = append(d, fmt.Sprintf("hook %q ran and should not have", c.Hook))
			continue
		}
		d.same("what hook "+c.Hook+" saw", seen(may[i].Input), seen(c.Input))
	}
	for _, c := range x.Calls {
		ran := slices.ContainsFunc(got, func(g Call) bool { return g.Hook == c.Hook })
		if !ran && !slices.Contains(unreached, c.Hook) {
			d = append(d, fmt.Sprintf("hook %q should have run and did not", c.Hook))
		}
	}
	return d
}

// differ collects sentences.
type differ []string

func (d *differ) same(what string, want, got any) {
	if !reflect.DeepEqual(want, got) {
		*d = append(*d, fmt.Sprintf("%s: the model says %+v, the fabric %+v", what, want, got))
	}
}

// spelled maps the two spellings of no opinion to one.
func spelled(d schema.Decision) schema.Decision {
	if d == schema.None {
		return schema.Continue
	}
	return d
}

// inOwnWords replaces a cut reason in got by the model's words for it.
func inOwnWords(want, got []schema.Injection) []schema.Injection {
	got = slices.Concat(got)
	for i := range got {
		if i < len(want) && want[i].Content == cutReason && got[i].Content != "" {
			got[i].Content = cutReason
		}
	}
	return got
}

// canonical makes two spellings of one JSON value alike; absent stays apart
// from everything.
func canonical(v jsontext.Value) string {
	if v == nil {
		return "absent"
	}
	v = v.Clone()
	if err := v.Canonicalize(); err != nil {
		return "invalid " + string(v)
	}
	return string(v)
}

func canonicals(vs []jsontext.Value) []string {
	var out []string
	for _, v := range vs {
		out = append(out, canonical(v))
	}
	return out
}

// rows returns the determined part of a trail: no durations, workers or wording.
func rows(trail []schema.ExecutedHook) []schema.ExecutedHook {
	var out []schema.ExecutedHook
	for _, h := range trail {
		kind := h.Outcome
		if kind == "" {
			kind = schema.OK
		}
		out = append(out, schema.ExecutedHook{Hook: h.Hook, Decision: spelled(h.Decision), Outcome: kind, Mode: h.Mode})
	}
	return out
}

// blamed counts errors by the hook they name. Sentences that name none are
// about the call as a whole and free.
func blamed(errors []string) map[string]int {
	out := map[string]int{}
	for _, e := range errors {
		if rest, ok := strings.CutPrefix(e, `hook "`); ok {
			if name, _, ok := strings.Cut(rest, `": `); ok {
				out[name]++
			}
		}
	}
	return out
}

// seen returns the parts of an event that hooks must see alike, including every part that an
// earlier hook may have rewritten.
func seen(e schema.Event) []string {
	return []string{
		string(e.HookType), e.AgentID, e.SessionID, e.EventID, e.ToolName, e.Prompt,
		canonical(e.ToolInput), canonical(e.ToolOutput), canonical(e.Message), canonical(e.Response),
	}
}
