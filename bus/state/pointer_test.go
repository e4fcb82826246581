package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/schema"
)

// proposal returns p with version n proposed.
func proposal(p pointer, n uint64) pointer {
	return p.propose(&proposed{Version: n, By: "b1", Note: fmt.Sprint("file ", n), Hooks: int(n)})
}

func TestAPointerKeepsTheLastEight(t *testing.T) {
	var p pointer
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for v := range uint64(10) {
		p = proposal(p, v+1).activate(at)
	}
	if p.Version != 10 || p.Last != 10 || p.Proposed != nil || len(p.Kept) != HistoryConfigs || !p.keeps(3) || p.keeps(2) {
		t.Errorf("%+v", p)
	}
	want := schema.VersionInfo{Version: 10, At: at, By: "b1", Note: "file 10", Hooks: 10}
	if d := cmp.Diff(want, p.Kept[0]); d != "" {
		t.Error(d)
	}
	if got := p.keep(); !slices.Equal(got, []uint64{10, 9, 8}) {
		t.Errorf("nodes keep %v", got)
	}
	p = proposal(p, 12)
	if got := p.keep(); !slices.Equal(got, []uint64{12, 10, 9, 8}) {
		t.Errorf("nodes keep %v", got)
	}
	if p = p.withdraw(); p.Version != 10 || p.Last != 12 || p.Proposed != nil {
		t.Errorf("without the proposal: %+v", p)
	}
}

func TestReadPointer(t *testing.T) {
	for name, c := range map[string]struct {
		value    string
		revision uint64
		version  uint64
		fails    bool
	}{
		"a pointer":          {`{"version":7,"last":9,"kept":[{"version":7}]}`, 4, 7, false},
		"only a proposal":    {`{"version":0,"last":1,"proposed":{"version":1}}`, 4, 0, false},
		"no key":             {"", 0, 0, false},
		"a deleted key":      {"", 4, 0, true},
		"another key's data": {`{"a":1}`, 4, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := readPointer([]byte(c.value), c.revision)
			if p.Version != c.version || (err != nil) != c.fails {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestAnInconsistentPointerIsRejected(t *testing.T) {
	for name, data := range map[string]string{
		"it is empty":                              `{}`,
		"the active version is not kept":           `{"version":2,"last":2}`,
		"the active version is not the first kept": `{"version":1,"last":2,"kept":[{"version":2},{"version":1}]}`,
		"a version is kept but none is active":     `{"version":0,"last":2,"kept":[{"version":2}]}`,
		"the kept versions rise":                   `{"version":1,"last":2,"kept":[{"version":1},{"version":2}]}`,
		"a version is kept twice":                  `{"version":2,"last":2,"kept":[{"version":2},{"version":2}]}`,
		"the active version was never proposed":    `{"version":3,"last":2,"kept":[{"version":3}]}`,
		"the proposed version is the active one":   `{"version":2,"last":2,"kept":[{"version":2}],"proposed":{"version":2}}`,
		"the proposed version is above the last":   `{"version":2,"last":2,"kept":[{"version":2}],"proposed":{"version":3}}`,
		"more versions are kept than there may be": `{"version":9,"last":9,"kept":[{"version":9},{"version":8},{"version":7},{"version":6},{"version":5},{"version":4},{"version":3},{"version":2},{"version":1}]}`,
		"the active version is negative":           `{"version":-1,"last":2}`,
	} {
		if p, err := parsePointer([]byte(data)); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func FuzzParsePointer(f *testing.F) {
	f.Add([]byte(`{"version":7,"last":9,"kept":[{"version":7,"by":"b1"},{"version":6}],"proposed":{"version":9,"note":"n"}}`))
	f.Add([]byte(`{"version":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePointer(data)
		if err != nil {
			return
		}
		again, err := schema.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parsePointer(again)
		if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("reading it back: %v\n%s", err, d)
		}
	})
}

func TestMinorVersionsAreDeletedFirst(t *testing.T) {
	var p pointer
	for n := uint64(1); n <= 30; n++ {
		p = p.propose(&proposed{Version: n, Minor: n != 1 && n != 20}).activate(time.Time{})
	}
	var kept []uint64
	for _, v := range p.Kept {
		kept = append(kept, v.Version)
	}
	if want := []uint64{30, 29, 28, 27, 26, 25, 20, 1}; !slices.Equal(kept, want) || !p.sound() {
		t.Errorf("%d are kept", kept)
	}
	for n := uint64(31); n <= 40; n++ {
		p = p.propose(&proposed{Version: n}).activate(time.Time{})
	}
	if last := p.Kept[len(p.Kept)-1]; len(p.Kept) != HistoryConfigs || last.Version != 33 {
		t.Errorf("without minor versions, the last kept one is %d", last.Version)
	}
}
