package bus

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

func someBatch() *schema.Batch {
	return &schema.Batch{Routing: someRouting(), Batch: "b-1", Version: 7, Hooks: []int{0, 3, 12},
		Left: 2 * time.Second, Body: []byte(`{"a":1}`)}
}

func someBatchMsg(t testing.TB) *nats.Msg {
	m := BatchMsg("hook.v1.run.default.w1", someBatch())
	m.Header = overTheWire(t, m.Header)
	return m
}

func TestBatchMsg(t *testing.T) {
	got, err := ParseBatchMsg(someBatchMsg(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(someBatch(), got); d != "" {
		t.Error(d)
	}
}

func TestTheLargestBatchFits(t *testing.T) {
	b := someBatch()
	b.Hooks = make([]int, MaxHooks)
	for i := range b.Hooks {
		b.Hooks[i] = i
	}
	b.Tool, b.Session = strings.Repeat("t", schema.MaxHeader), strings.Repeat("s", schema.MaxHeader)
	m := BatchMsg("hook.v1.run.default.w1", b)
	got, err := ParseBatchMsg(m)
	if err != nil || !cmp.Equal(got, b) {
		t.Fatalf("the batch arrives changed: %v", err)
	}
	size := 0
	for k, v := range m.Header {
		size += len(k) + len(v[0]) + 4
	}
	if size > schema.MaxPayload-schema.MaxEvent {
		t.Errorf("the headers take %d bytes, more than a large event leaves free", size)
	}
}

func TestParseBatchMsgRefuses(t *testing.T) {
	cases := eventFaults()
	maps.Copy(cases, faults{
		"no batch id":                   {"Hook-Batch", nil, "Hook-Batch is missing"},
		"no config version":             {"Hook-Config", nil, "Hook-Config is missing"},
		"a negative config version":     {"Hook-Config", []string{"-1"}, "a number"},
		"a config version of 21 digits": {"Hook-Config", []string{strings.Repeat("9", 21)}, "a number"},
		"no agent":                      {"Hook-Agent", nil, "Hook-Agent is missing"},
		"two agents":                    {"Hook-Agent", []string{"a", "b"}, "2 times"},
		"no event":                      {"Hook-Event", nil, "Hook-Event is missing"},
		"an unknown event":              {"Hook-Event", []string{"Lunch"}, "write one of"},
		"no hooks":                      {"Hook-Hooks", nil, "Hook-Hooks is missing"},
		"a hook that is a word":         {"Hook-Hooks", []string{"0,x"}, `lists "x"`},
		"a negative hook":               {"Hook-Hooks", []string{"-1"}, `lists "-1"`},
		"a hook with a leading zero":    {"Hook-Hooks", []string{"01"}, `lists "01"`},
		"a hook beyond all bounds":      {"Hook-Hooks", []string{"1000000000"}, "lists"},
		"a list with a gap":             {"Hook-Hooks", []string{"0,,1"}, `lists ""`},
		"a list with blanks":            {"Hook-Hooks", []string{"0, 1"}, `lists " 1"`},
		"a hook twice":                  {"Hook-Hooks", []string{"1,1"}, "registration order"},
		"hooks out of order":            {"Hook-Hooks", []string{"2,1"}, "registration order"},
		"10001 hooks":                   {"Hook-Hooks", []string{strings.Repeat(",", MaxHooks)}, "lists 10001 hooks"},
		"a list beyond all bounds":      {"Hook-Hooks", []string{strings.Repeat("1", 60<<10)}, "at most 53248"},
	})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := someBatchMsg(t)
			spoil(m, c.key, c.values)
			if b, err := ParseBatchMsg(m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseBatchMsg = %+v, %v; want an error with %q", b, err, c.want)
			}
		})
	}
	m := someBatchMsg(t)
	m.Data = make([]byte, schema.MaxEvent+1)
	if _, err := ParseBatchMsg(m); err == nil {
		t.Error("a body one byte too large is accepted")
	}
}

func FuzzParseBatchMsg(f *testing.F) {
	f.Add("b", "1", "0,3", "a", "PreToolUse", someID, "Bash", "1s")
	f.Add("", "-1", ",", "%", "x", "", "\x00", "h")
	f.Fuzz(func(t *testing.T, batch, config, hooks, agent, event, id, tool, left string) {
		m := &nats.Msg{Header: nats.Header{"Hook-Batch": {batch}, "Hook-Config": {config}, "Hook-Hooks": {hooks},
			"Hook-Agent": {agent}, "Hook-Event": {event}, "Hook-Id": {id}, "Hook-Tool": {tool}, "Hook-Left": {left}}}
		b, err := ParseBatchMsg(m)
		if err != nil {
			return
		}
		if longest := max(len(batch), len(agent), len(tool)); longest*3 > schema.MaxHeader {
			return // escaped values may be longer than a header may be
		}
		again := BatchMsg("x", b)
		again.Header = overTheWire(t, again.Header)
		if got, err := ParseBatchMsg(again); err != nil || !cmp.Equal(got, b) {
			t.Errorf("%+v is read back as %+v, %v", b, got, err)
		}
	})
}

func BenchmarkBatchMsg(b *testing.B) {
	batch := someBatch()
	b.ReportAllocs()
	for b.Loop() {
		_ = BatchMsg("hook.v1.run.default.w1", batch)
	}
}

func BenchmarkParseBatchMsg(b *testing.B) {
	m := someBatchMsg(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBatchMsg(m); err != nil {
			b.Fatal(err)
		}
	}
}
