package loop

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// steady is ten repetitions in which a query of each setup takes so long, and
// the bare one 1 ms.
func steady(takes map[string]time.Duration) map[string][]sample {
	samples := map[string][]sample{}
	for _, c := range contenders() {
		took := time.Millisecond
		if d, ok := takes[c.name]; ok {
			took = d
		}
		f := measure.Figures{Calls: 1, P50: schema.Duration(took), P99: schema.Duration(took), PerSecond: 1 / took.Seconds()}
		for range 10 {
			samples[c.title()] = append(samples[c.title()], sample{1: f, many: f})
		}
	}
	return samples
}

// due are the messages that there must be.
func due() map[string]int {
	all := map[string]int{}
	for _, c := range contenders() {
		all[c.title()] = c.messages
	}
	return all
}

// fast is faster than bare ones.
func fast() map[string]time.Duration {
	return map[string]time.Duration{
		"no hook": 400 * time.Microsecond, "a hook on each event inside broker": 700 * time.Microsecond,
	}
}

func TestAReportIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(takes map[string]time.Duration, counted map[string]int)
		want   bool
	}{
		"the messages that are due are fine":      {func(map[string]time.Duration, map[string]int) {}, true},
		"a slow query is, too: bench judges time": {func(takes map[string]time.Duration, _ map[string]int) { takes["no hook"] = time.Second }, true},
		"one for a hook whose when is false is not": {func(_ map[string]time.Duration, counted map[string]int) {
			counted["a hook on each event whose when is false, tools at once"] = 1
		}, false},
		"nor one too few for hooks elsewhere, which nobody can have asked then": {func(_ map[string]time.Duration, counted map[string]int) {
			counted["a hook on each event of a remote pool, tools in sequence"] = 14
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			takes, counted := fast(), due()
			c.change(takes, counted)
			if r := judged(Thorough(), steady(takes), counted); r.OK() != c.want {
				t.Errorf("ok is %v: %+v %+v", r.OK(), r.Rows, r.Messages)
			} else if err := r.Sound(); err != nil || r.Document.OK() != c.want || len(r.Figures) != len(r.Rows) {
				t.Errorf("the checks are %+v, the figures %+v, %v", r.Checks, r.Figures, err)
			}
		})
	}
}

func TestTheReportAsJSONAndForPeople(t *testing.T) {
	r := judged(Thorough(), steady(fast()), due())
	body, err := schema.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []map[string]jsontext.Value `json:"rows"`
	}
	if err := schema.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"budget", "callers", "high", "low", "metric", "name", "ok", "ratio"}
	for _, row := range got.Rows {
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(row))); d != "" {
			t.Fatalf("a row's members (-want +got):\n%s", d)
		}
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.40 [0.40 0.40]", "2.50 [2.50 2.50]", "15 of 15", "400µs", "10 repetitions of 300ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}

// TestTheConfigurationIsAsTheRowsSay holds the hooks to what the rows' names say.
func TestTheConfigurationIsAsTheRowsSay(t *testing.T) {
	doc, err := hooksyaml.Read("hooks.yaml", []byte(hooksYAML()), hooksyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 3 * len(events()); len(doc.Config.Hooks) != want {
		t.Errorf("%d hooks where %d are due", len(doc.Config.Hooks), want)
	}
}
