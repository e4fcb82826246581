package rounds

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// FuzzRead checks that any value is a valid round or none, and that writing the round again does not change it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `junk`, `{"number":-1}`, `{"grace":"-1s"}`, `{"number":3,"initial":"10m","grace":"2m","id":"x"}`,
		`{"start":7,"started":"2026-01-02T03:04:05Z","warned":true,"denied":["a","b"],"terminate":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stored := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		rec := read(kv.Entry{Value: data, Revision: 9, Created: stored})
		if rec == nil {
			return
		}
		if round := rec.round("a", new(kv.Clock)); round.Start == 0 || round.Number < 0 || round.Denials > MaxDenials || round.Elapsed < 0 || round.Since < 0 {
			t.Errorf("%q is %+v", data, round)
		}
		again, err := schema.Marshal(rec.copy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rec, read(kv.Entry{Value: again, Revision: 9, Created: stored}), cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%q:\n%s", data, diff)
		}
	})
}

func TestInvalidRecordsAreNoRounds(t *testing.T) {
	for name, e := range map[string]kv.Entry{
		"nothing":        {},
		"a marker":       {Revision: 3, Kind: kv.Deleted},
		"a lapsed round": {Revision: 3, Kind: kv.Lapsed},
		"junk":           {Revision: 3, Value: []byte("junk")},
	} {
		if rec := read(e); rec != nil {
			t.Errorf("%s is %+v", name, rec)
		}
	}
}
