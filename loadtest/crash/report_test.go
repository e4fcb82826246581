package crash

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/audit"
)

func TestTheReport(t *testing.T) {
	good := func() *Report {
		return &Report{Asked: 2, Findings: audit.Findings{Accepted: 2, Delivered: 2, Excused: audit.Kind{Count: 1}}, Calls: audit.Calls{Asked: 4}, Killed: map[string]int{"shim": 3}}
	}
	for name, c := range map[string]struct {
		spoil func(*Report)
		want  string
	}{
		"a run without violations is fine":      {func(*Report) {}, ""},
		"a loss is not":                         {func(r *Report) { r.Findings.Lost.Add("number 7") }, "lost: number 7"},
		"nor is an item that came twice":        {func(r *Report) { r.Findings.Duplicated.Add("number 7") }, "duplicated: number 7"},
		"nor are injections that nobody took":   {func(r *Report) { r.Asked = 3 }, "of 3"},
		"nor is what the fabric still holds":    {func(r *Report) { r.Pending = 1 }, "VIOLATION"},
		"nor is a fabric that does not say":     {func(r *Report) { r.Pending = -1 }, "VIOLATION"},
		"nor is one in which nobody asked":      {func(r *Report) { r.Calls.Asked = 0 }, "calls"},
		"a line for each that was killed":       {func(r *Report) { r.Torn = 3 }, ""},
		"nor is a log that cannot be read":      {func(r *Report) { r.Torn = 4 }, "VIOLATION"},
		"nor is a forbidden tool that was free": {func(r *Report) { r.Calls = audit.Calls{Asked: 4, Wrong: 1, Why: "it passed"} }, "it passed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(r)
			if r.OK() != (c.want == "") {
				t.Errorf("ok is %v", r.OK())
			}
			r.document()
			if err := r.Sound(); err != nil || r.Document.OK() != r.OK() {
				t.Errorf("the checks are %+v, %v", r.Checks, err)
			}
			var b bytes.Buffer
			if err := r.Print(&b); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), c.want) || !strings.Contains(b.String(), "3 × shim") {
				t.Errorf("the table lacks %q:\n%s", c.want, &b)
			}
		})
	}
}

func TestFaultsEndInTimeForTheLastLease(t *testing.T) {
	for load, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 10*time.Minute - lease,
		30 * time.Second: 10 * time.Second,
	} {
		if got := (&Options{For: load}).faults(); got != want {
			t.Errorf("of %v of load %v have faults, want %v", load, got, want)
		}
	}
}
