package dialect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Reasons for a decision without one. Some runtimes take a denial with an empty reason for an allow.
const (
	noReason    = "a hook denies this, without a reason"
	askReason   = "a hook wants a person to approve this"
	retryReason = "a hook wants you to continue"
	stopReason  = "a hook ends this run"
	// fixedInput is for a rewrite of a call that a person already sees.
	fixedInput = "a hook rewrites this call, but this runtime cannot rewrite a call that waits for approval; make the call in a form that the policy accepts unchanged"
)

type parts map[string]any

// say returns an answer with these members. If it cannot encode them, it refuses if it can.
func (o parts) say(d Dialect, m Moment) (Answer, error) {
	data, err := schema.Marshal(map[string]any(o))
	if err != nil {
		err = fmt.Errorf("encoding the answer: %w", err)
		if refusable(m) {
			return d.Refuse(m, err.Error()), nil
		}
		return Answer{}, err
	}
	return Answer{Stdout: append(data, '\n')}, nil
}

// flat returns an answer with these members, which are texts only.
func (o parts) flat() Answer { return Answer{Stdout: append(object(o), '\n')} }

// deny refuses, with a reason that must not be empty: Gemini CLI ignores an empty reason.
func (o parts) deny(reason string) { o["decision"], o["reason"] = "deny", reason }

// refusable reports whether an answer can refuse something at a moment. An unknown moment counts as refusable.
func refusable(m Moment) bool { return m.Name == "" || m.Can[Deny] != Impossible }

// refuses reports whether the decision of a verdict is a denial. An unknown decision counts as one.
func refuses(v *schema.Verdict) bool {
	switch v.Decision {
	case schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Retry:
		return false
	}
	return true
}

func ends(v *schema.Verdict) bool {
	return v.Terminate != nil || v.Decision == schema.Stop || v.Decision == schema.Fail
}

// spoken returns a reason that is not empty: some runtimes take a denial without a reason for an allow.
func spoken(reason string) string { return cmp.Or(strings.TrimSpace(reason), noReason) }

// why returns the reason of a refusal, with the value that a stop has for the tool's output.
func why(v *schema.Verdict) string {
	reason := strings.TrimSpace(v.Reason + "\n" + Text(v.Value))
	if v.Terminate != nil {
		reason = cmp.Or(reason, v.Terminate.Reason)
	}
	return spoken(reason)
}

// feedback returns what is wrong with a call that has run; empty: nothing is wrong.
func feedback(v *schema.Verdict) string {
	if refuses(v) {
		return why(v)
	}
	return ""
}

// replacement returns the text that replaces a tool's output; empty: the output stays.
func replacement(v *schema.Verdict) string {
	if v.UpdatedOutput == nil {
		return ""
	}
	return cmp.Or(Text(v.UpdatedOutput), "(no output)")
}

// GoesOn returns the text with which the agent continues at the end of its turn; empty: the turn ends. If it
// already continues because of a hook, only a retry or an injection that waited keeps it going.
func GoesOn(c *Call, v *schema.Verdict) string {
	told := texts(v.Injections)
	switch {
	case ends(v):
		return ""
	case v.Decision == schema.Retry:
		return together(cmp.Or(strings.TrimSpace(v.Reason), retryReason), told)
	case c.PutOff() && !slices.ContainsFunc(v.Injections, Waited):
		return ""
	}
	return told
}

// Waited reports whether an injection comes once only: it waited for the agent, or is not from a hook.
func Waited(in schema.Injection) bool { return in.Sequence > 0 || in.Hook == "" }

func texts(all []schema.Injection) string {
	told := make([]string, len(all))
	for i := range all {
		told[i] = all[i].Content
	}
	return together(told...)
}

func together(all ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(all), func(t string) bool { return t == "" }), "\n\n")
}

// Text returns a JSON value as a model reads it: a string without quotes, else the JSON.
func Text(v []byte) string {
	var s string
	if len(v) > 0 && v[0] == '"' && schema.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// sameJSON reports whether two values are equal as JSON, apart from their formatting.
func sameJSON(a, b jsontext.Value) bool {
	x, y := a.Clone(), b.Clone()
	exact := []jsontext.Options{jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
	return x.Canonicalize(exact...) == nil && y.Canonicalize(exact...) == nil && bytes.Equal(x, y)
}

type values = map[string]jsontext.Value

// members returns the members of an object; nil: the value is not an object.
func members(v jsontext.Value) values {
	var all values
	if v.Kind() != '{' || schema.Unmarshal(v, &all) != nil {
		return nil
	}
	return all
}

// object returns an object of members that are texts or JSON already.
func object[T any](members map[string]T) jsontext.Value {
	data, err := schema.Marshal(members)
	if err != nil {
		return nil
	}
	return data
}

// list returns an array of items that are JSON already.
func list(items ...jsontext.Value) jsontext.Value {
	data, err := schema.Marshal(append([]jsontext.Value{}, items...))
	if err != nil {
		return nil
	}
	return data
}

func quoted(s string) jsontext.Value {
	data, err := schema.Marshal(s)
	if err != nil {
		return jsontext.Value(`""`)
	}
	return data
}
