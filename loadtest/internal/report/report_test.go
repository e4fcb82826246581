package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// document returns a document with all kinds of content, and with texts that are hard to
// show.
func document() *Document {
	return &Document{
		Scenario: "fleet", Title: `200 agents </title><script>alert("x")</script>`, Started: time.Unix(1_700_000_000, 0), Took: 61.04,
		Command: "loadtest fleet --agents=200", Machine: Facts{OS: "linux", Arch: "amd64", CPUs: 2, CPU: "a & b", Go: "go1.26"},
		Figures: []Figure{
			Figured("p50", "s", Lower, []float64{0.001, 0.0011, 0.0012}).Within(0.002),
			Figured("throughput", "/s", Higher, []float64{900, 1000, 1100}).Within(5000),
			Figured("memory", "B", Neither, []float64{5 << 20}).Within(1),
		},
		Checks: []Check{
			{Name: "every deny was honoured", Seen: 12_345},
			{Name: "nothing came late", Seen: 5, Wrong: 2, Examples: []string{"call <7> came 3 ms late"}},
			{Name: "faults were done", Seen: 1, Least: 3},
		},
		Tables: []Table{{
			Title: "by kind", Columns: []string{"kind", "calls", "p50"}, Note: "a note on it",
			Rows: [][]string{{"<b>", "1,000", "1.5 ms"}, {"3 hooks of a pool", "7", "–"}, {"short"}},
		}},
		Plots: []Plot{
			{Title: "Latency", X: Axis{Label: "time", Unit: "s"}, Y: Axis{Label: "p99", Unit: "s"},
				Lines: []Line{{Name: "<p99>", X: []float64{1, 2}, Y: []float64{1, 2}}}, Marks: []Mark{{X: 1, Label: "kill"}}},
			{Title: "Latency"},
		},
		Notes: []string{"mind the gap", "CAREFUL: it is wide"},
	}
}

func TestAnIntervalIsLegible(t *testing.T) {
	for want, f := range map[string]Figure{
		"[2 4]":            {Unit: "s", Value: 0.003, Low: 0.002, High: 0.004},
		"[153 1,245]":      {Unit: "s", Value: 0.294, Low: 0.153, High: 1.245},
		"[0 s 1.76 s]":     {Unit: "s", Value: 0, Low: 0, High: 1.76},
		"[-20 ms 0 s]":     {Unit: "s", Value: 0, Low: -0.020, High: 0},
		"[1 µs 200 ms]":    {Unit: "s", Value: 2e-6, Low: 1e-6, High: 0.2},
		"[-126 87.6]":      {Unit: "B", Value: -7.97 * 1024, Low: -126 * 1024, High: 87.6 * 1024},
		"[12 B 3 GiB]":     {Unit: "B", Value: 100, Low: 12, High: 3 << 30},
		"[5,490 5,652]":    {Unit: "/s", Value: 5566, Low: 5490, High: 5652},
		"[0.900 1.10]":     {Unit: "ratio", Value: 1, Low: 0.9, High: 1.1},
		"[45,000 210,000]": {Unit: "/s", Value: 100_000, Low: 45_000, High: 210_000},
		"":                 {Unit: "s", Value: 3, Low: 3, High: 3},
	} {
		if got := Interval(f); got != want {
			t.Errorf("of %+v it is %q, want %q", f, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	if err := Print(&b, document(), &Document{Title: "another"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"figure         value   95 % interval      budget\n",
		"p50          1.10 ms   [1 1.20]           ≤ 2 ms   ok\n",
		"throughput   1,000/s   [900 1,100]     ≥ 5,000/s   OVER BUDGET\n",
		"memory         5 MiB                         1 B\n",
		"kind                calls      p50\n<b>                 1,000   1.5 ms\n3 hooks of a pool       7        –\nshort\na note on it\n",
		"every deny was honoured   12,345       0   ok\n",
		"nothing came late              5       2   VIOLATION\n",
		"NOT TESTED: seen 1 times instead of 3\n",
		"nothing came late: call <7> came 3 ms late\n",
		"\nmind the gap\nCAREFUL: it is wide\n\nscenario: fleet\n",
		"command: loadtest fleet --agents=200\n",
		"when: 2023-11-14 22:13:20 UTC, for 1m1s\n",
		"machine: linux/amd64, 2 CPUs a & b",
		"1 of 3 checks held, 1 of 2 budgets kept\n",
		"\nanother\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &b)
		}
	}
}

func TestAWriterThatFails(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"printing":     func(w io.Writer) error { return Print(w, document()) },
		"writing HTML": func(w io.Writer) error { return HTML(w, document()) },
	} {
		if err := write(full{}); !errors.Is(err, errFull) {
			t.Errorf("%s ended with %v", name, err)
		}
	}
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// htmlOf returns the HTML of documents.
func htmlOf(t *testing.T, docs ...*Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, docs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestThePageIsWellFormed reads it as XML, which is stricter than HTML, and checks that a
// browser fetches and runs nothing.
func TestThePageIsWellFormed(t *testing.T) {
	page := htmlOf(t, document(), &Document{}, document())
	d := xml.NewDecoder(strings.NewReader(page))
	elements := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		elements[e.Name.Local]++
		for _, a := range e.Attr {
			if a.Name.Local == "src" || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("<%s> has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	for _, name := range []string{"script", "link", "img", "iframe", "b", "p99"} {
		if elements[name] > 0 {
			t.Errorf("there are %d <%s>", elements[name], name)
		}
	}
	if elements["svg"] != 4 || elements["section"] != 3 {
		t.Errorf("there are %d pictures and %d sections", elements["svg"], elements["section"])
	}
	if found := regexp.MustCompile(`https?://|url\(|@import`).FindString(page); found != "" {
		t.Errorf("the page has %q in it", found)
	}
	if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
		t.Error("the browser is not told that nothing is to be fetched")
	}
}

func TestThePageSaysEverything(t *testing.T) {
	page := htmlOf(t, document())
	for _, want := range []string{
		"200 agents &lt;/title&gt;&lt;script&gt;", "1.10 ms", "≤ 2 ms", `<td class="failed">OVER BUDGET</td>`, `<td class="failed">VIOLATION</td>`,
		`<td class="failed">NOT TESTED`, "call &lt;7&gt; came 3 ms late", `<td class="right">1,000</td>`, "<td>&lt;b&gt;</td>", "a note on it", "<p>mind the gap</p>", `<p class="sum failed">CAREFUL: it is wide</p>`,
		"loadtest fleet --agents=200", "2023-11-14 22:13:20 UTC, for 1m1s", "a &amp; b", `<p class="sum failed">1 of 3 checks held, 1 of 2 budgets kept</p>`,
		"prefers-color-scheme:dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q", want)
		}
	}
}

func TestPictures(t *testing.T) {
	d := document()
	d.Plots = append(d.Plots, Plot{Title: strings.Repeat("../long ", 50)})
	names, err := Pictures(t.TempDir()+"/new", d)
	if err != nil || len(names) != 3 {
		t.Fatalf("there are %q, %v", names, err)
	}
	for i, end := range []string{"/fleet-latency.svg", "/fleet-latency-2.svg", "/fleet-" + strings.Repeat("long-", 14) + "long.svg"} {
		body, err := os.ReadFile(names[i])
		if err != nil || !strings.HasPrefix(string(body), "<svg xmlns=") || !strings.HasSuffix(names[i], end) {
			t.Errorf("%s is %.20q, %v", names[i], body, err)
		}
	}
}
