package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// complete returns a document in which every field is set.
func complete() *Document {
	return &Document{
		Scenario: "fleet", Title: "a title", Started: time.Unix(1_700_000_000, 0).UTC(), Took: 1.5, Command: "loadtest fleet",
		Figures: []Figure{Figured("p50", "s", Lower, []float64{1, 2, 3}).Within(4), Figured("rate", "/s", Higher, []float64{1})},
		Checks:  []Check{{Name: "all is well", Seen: 3, Least: 1, Wrong: 1, Examples: []string{"<it> & was not"}}},
		Tables:  []Table{{Title: "t", Columns: []string{"a"}, Rows: [][]string{{"1"}}, Note: "n"}},
		Plots: []Plot{{Title: "p", X: Axis{Label: "time", Unit: "s"}, Y: Axis{Label: "latency", Unit: "s", Log: true},
			Lines: []Line{{Name: "l", X: []float64{1}, Y: []float64{2}, Low: []float64{1}, High: []float64{3}}}, Marks: []Mark{{X: 1, Until: 2, Label: "kill -9"}}}},
		Notes: []string{"a note"},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := complete()
	body, err := schema.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("it came back changed (-want +got):\n%s", d)
	}
}

func TestAReportWithMoreInItIsRead(t *testing.T) {
	d, err := Read(strings.NewReader(`{"rows": [{"name": "no hook matches"}], "scenario": "bench", "title": "t"}`))
	if err != nil || d.Scenario != "bench" || d.Title != "t" {
		t.Errorf("it is %+v, %v", d, err)
	}
}

func TestWhatIsNotSound(t *testing.T) {
	for name, spoil := range map[string]func(*Document){
		"two figures of one name cannot be told apart": func(d *Document) { d.Figures = append(d.Figures, d.Figures[0]) },
		"a figure without a name cannot be found":      func(d *Document) { d.Figures[0].Name = "" },
		"a value lies within its interval":             func(d *Document) { d.Figures[0].Low = 99 },
		"what is not a number lies nowhere":            func(d *Document) { d.Figures[0].Value = math.NaN() },
		"each point has both coordinates":              func(d *Document) { d.Plots[0].Lines[0].Y = nil },
		"each point has an interval or none has":       func(d *Document) { d.Plots[0].Lines[0].Low = append(d.Plots[0].Lines[0].Low, 1) },
		"an interval has two ends":                     func(d *Document) { d.Plots[0].Lines[0].High = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := complete()
			if err := d.Sound(); err != nil {
				t.Fatal(err)
			}
			spoil(d)
			if d.Sound() == nil {
				t.Error("it was taken for sound")
			}
		})
	}
}

// FuzzRead checks what all users of a document rely on.
func FuzzRead(f *testing.F) {
	body, err := schema.Marshal(complete())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"scenario": "x", "figures": [{"name": "a", "value": 1e308, "low": -1e308, "high": 1e308}]}`))
	f.Add([]byte(`{"rows": []}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Read(bytes.NewReader(body))
		if err != nil {
			return
		}
		if d.Scenario == "" || d.Sound() != nil {
			t.Errorf("it read %+v", d)
		}
		again, err := schema.Marshal(d)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := Read(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again)
		}
		_ = back.OK()
	})
}
