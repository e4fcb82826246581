package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// lines are what is written of entries.
func lines(t *testing.T, o record.Options, entries ...record.Entry) (all [][]byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, _ := write(t, s, o)
		for _, e := range entries {
			w.Put(e)
		}
		<-time.After(time.Second)
		batches, _ := history(t, s, record.Span{})
		for _, b := range batches {
			all = append(all, b.Lines...)
		}
	})
	if len(all) != len(entries) {
		t.Fatalf("%d records are kept of %d", len(all), len(entries))
	}
	return all
}

func asked(body string) record.Entry {
	return record.Entry{Record: &schema.Record{Time: time.Now(), EventID: "x", Agent: "a"}, Body: []byte(body)}
}

// The hash is of the canonical form of RFC 8785: members in their order, numbers and
// texts in one form.
func TestTheSameInputHasTheSameHash(t *testing.T) {
	sum := func(canonical string) string {
		h := sha256.Sum256([]byte(canonical))
		return "sha256-" + hex.EncodeToString(h[:])
	}
	same := sum(`{"a":1,"b":["é",null],"c":{"x":10,"y":"/"}}`)
	for body, want := range map[string]string{
		`{"tool_input":{"a":1,"b":["é",null],"c":{"x":10,"y":"/"}}}`:                                        same,
		`{"x":0, "tool_input" : { "c":{"y":"\/","x":1e1}, "b":["\u00e9", null ], "a":1.0} ,"tool_name":""}`: same,
		`{"tool_input":{"a":2,"b":["é",null],"c":{"x":10,"y":"/"}}}`:                                        sum(`{"a":2,"b":["é",null],"c":{"x":10,"y":"/"}}`),
		`{"tool_input":{}}`:                      sum(`{}`),
		`{"prompt":"hello"}`:                     sum(`"hello"`),
		`{"tool_input":null,"response":"hello"}`: "",
		`{"message":"hello"}`:                    "",
		`{"tool_input":{"a":`:                    "",
		`junk`:                                   "",
	} {
		if got := read(t, lines(t, record.Options{}, asked(body))[0]); got.InputHash != want {
			t.Errorf("%s: %q; want %q", body, got.InputHash, want)
		}
	}
}

func TestTheHostIsTheEventsOrTheOneThatIsKnown(t *testing.T) {
	host := func(agent string) string { return "known-of-" + agent }
	all := lines(t, record.Options{Host: host}, asked(`{"labels":{"host":"here","x":"y"}}`), asked(`{"labels":{"x":"host"}}`), asked(`{"labels":{"host":5}}`))
	for i, want := range []string{"here", "known-of-a", "known-of-a"} {
		if got := read(t, all[i]); got.Host != want {
			t.Errorf("%q; want %q", got.Host, want)
		}
	}
}

const typed = `{"tool_input":{"command":"deploy --password hunter22","env":{"PLAIN":"pa55-in-plain"},"path":"x"},"tool_output":"used pa55-in-plain","prompt":"p"}`

func TestContentIsRecordedOnlyOnRequest(t *testing.T) {
	e := asked(typed)
	e.Input = jsontext.Value(`{"rewritten":true}`)
	if line := lines(t, record.Options{}, e)[0]; bytes.Contains(line, []byte("content")) || bytes.Contains(line, []byte("deploy")) || bytes.Contains(line, []byte("rewritten")) {
		t.Errorf("%s", line)
	}
	got := read(t, lines(t, record.Options{Content: true}, e)[0])
	want := `{"prompt":"p","tool_input":{"command":"deploy --password [removed]","env":{"PLAIN":"pa55-in-plain"},"path":"x"},"tool_output":"used pa55-in-plain","updated_input":{"rewritten":true}}`
	if string(got.Content) != want {
		t.Errorf("%s", got.Content)
	}
}

func TestValuesThatRulesNameAreRemovedEverywhere(t *testing.T) {
	rules, err := redact.Parse([]string{"tool_input.env.*"})
	if err != nil {
		t.Fatal(err)
	}
	e := asked(typed)
	e.Record.Reason, e.Record.HookErrors = "pa55-in-plain is no password", []string{"bad: pa55-in-plain"}
	e.Record.ExecutedHooks = []schema.ExecutedHook{{Hook: "h", Outcome: schema.Errored, Reason: "pa55-in-plain", Error: "token=SSSSSS"}}
	for _, content := range []bool{false, true} {
		line := lines(t, record.Options{Content: content, Rules: rules}, e)[0]
		if bytes.Contains(line, []byte("pa55")) || bytes.Contains(line, []byte("SSSS")) || bytes.Contains(line, []byte("hunter")) {
			t.Errorf("content %t: %s", content, line)
		}
		if got := read(t, line); got.Reason != "[removed] is no password" || got.HookErrors[0] != "bad: [removed]" || got.ExecutedHooks[0].Error != "token=[removed]" {
			t.Errorf("content %t: %+v", content, got)
		}
	}
	if e.Record.Reason != "pa55-in-plain is no password" || e.Record.ExecutedHooks[0].Reason != "pa55-in-plain" {
		t.Error("the feed's record was changed")
	}
}

func TestContentIsBounded(t *testing.T) {
	e := asked(`{"tool_input":{"a":"` + strings.Repeat("x ", 20<<10) + `"},"tool_output":[` + strings.Repeat(`"0123456789",`, 10_000) + `""],"prompt":"p"}`)
	got := read(t, lines(t, record.Options{Content: true}, e)[0])
	if len(got.Content) > 64<<10 || !slices.Equal(got.Cut, []string{"tool_output"}) || !bytes.Contains(got.Content, []byte(`… [cut]`)) {
		t.Errorf("%d bytes, cut %q", len(got.Content), got.Cut)
	}
}

// What has more values than are looked at is left out, and with it what may repeat a secret in it.
func TestAMemberWithManyValuesIsLeftOut(t *testing.T) {
	rules, err := redact.Parse([]string{"tool_input.env.*"})
	if err != nil {
		t.Fatal(err)
	}
	e := asked(`{"tool_input":{"env":{"KEY":"pa55-in-plain"},"list":[` + strings.Repeat("1,", 40_000) + `1]},"prompt":"p"}`)
	e.Record.Reason = "pa55-in-plain is no password"
	got := read(t, lines(t, record.Options{Content: true}, e)[0])
	if string(got.Content) != `{"prompt":"p"}` || !slices.Equal(got.Cut, []string{"tool_input"}) || got.Reason != e.Record.Reason {
		t.Errorf("without rules: %s, cut %q: %q", got.Content, got.Cut, got.Reason)
	}
	got = read(t, lines(t, record.Options{Content: true, Rules: rules}, e)[0])
	if got.Content != nil || !slices.Equal(got.Cut, []string{"content"}) || got.Reason != redact.Removed {
		t.Errorf("with rules: %s, cut %q: %q", got.Content, got.Cut, got.Reason)
	}
}

func TestAFilterPicksRecords(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	rec := schema.Record{Time: at, Agent: "build-1", Event: schema.PreToolUse, Tool: "Bash", Decision: schema.Deny,
		ExecutedHooks: []schema.ExecutedHook{{Hook: "log"}, {Hook: "no-shell"}}}
	late := rec
	late.Unjudged, late.Time = true, at.Add(-time.Hour)
	for name, c := range map[string]struct {
		wish  record.Wish
		other bool
		want  bool
	}{
		"no wish":                {want: true},
		"its agent":              {wish: record.Wish{Agent: "build-1"}, want: true},
		"agents like it":         {wish: record.Wish{Agent: "x|build-*"}, want: true},
		"another agent":          {wish: record.Wish{Agent: "build-2"}},
		"its tool":               {wish: record.Wish{Tool: "Bash"}, want: true},
		"another tool":           {wish: record.Wish{Tool: "bash"}},
		"one of its hooks":       {wish: record.Wish{Hook: "no-shell"}, want: true},
		"hooks like it":          {wish: record.Wish{Hook: "no-*"}, want: true},
		"another hook":           {wish: record.Wish{Hook: "no"}},
		"its decision":           {wish: record.Wish{Decision: schema.Deny}, want: true},
		"another decision":       {wish: record.Wish{Decision: schema.Allow}},
		"its event":              {wish: record.Wish{Event: schema.PreToolUse}, want: true},
		"another event":          {wish: record.Wish{Event: schema.PostToolUse}},
		"from its time on":       {wish: record.Wish{Since: at}, want: true},
		"from later on":          {wish: record.Wish{Since: at.Add(1)}},
		"before later":           {wish: record.Wish{Until: at.Add(1)}, want: true},
		"before its time":        {wish: record.Wish{Until: at}},
		"all of it":              {wish: record.Wish{Agent: "build-1", Tool: "B*", Hook: "log", Decision: schema.Deny, Event: schema.PreToolUse, Since: at}, want: true},
		"handed in since then":   {wish: record.Wish{Since: at}, other: true, want: true},
		"handed in, and later":   {wish: record.Wish{Since: at.Add(time.Hour)}, other: true},
		"handed in, before then": {wish: record.Wish{Until: at.Add(time.Hour)}, other: true, want: true},
	} {
		f, err := record.NewFilter(c.wish)
		if err != nil {
			t.Fatal(err)
		}
		of := rec
		if c.other {
			of = late
		}
		line, err := schema.Marshal(&of)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Pick(line, at); err != nil || (got != nil) != c.want {
			t.Errorf("%s: picked %t, %v", name, got != nil, err)
		}
	}
	for _, w := range []record.Wish{{Agent: "a["}, {Tool: "^x$"}, {Hook: "a[b"}} {
		if _, err := record.NewFilter(w); err == nil {
			t.Errorf("%+v was taken", w)
		}
	}
	f, _ := record.NewFilter(record.Wish{})
	if _, err := f.Pick([]byte("junk"), at); err == nil {
		t.Error("junk was picked")
	}
}

// What a filter looks for in a line before it reads it is written as the line is.
func TestAFilterFindsNamesWithAnyLetters(t *testing.T) {
	for _, agent := range []string{`a"b`, "a\\b", "ä/b", "a\x01b", "a<b>&", "a b"} {
		line, err := schema.Marshal(&schema.Record{Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		f, err := record.NewFilter(record.Wish{Agent: agent})
		if err != nil {
			t.Logf("%q is no pattern: %v", agent, err)
			continue
		}
		if got, err := f.Pick(line, time.Time{}); err != nil || got == nil {
			t.Errorf("%q is not found in %s: %v", agent, line, err)
		}
	}
}

func TestEveryCauseIsListed(t *testing.T) {
	seen := map[record.Cause]bool{}
	for _, c := range record.Causes() {
		if seen[c] || c == "" {
			t.Errorf("%q", c)
		}
		seen[c] = true
	}
	if got := fmt.Sprint(len(seen)); got != "4" {
		t.Errorf("%s causes", got)
	}
}
