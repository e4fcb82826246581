package freezes

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// FuzzRead checks that any value is a valid list of freezes or an error, and that writing the list again does not change
// it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "null", "[]", "{}", `{"freezes":null}`, `{"freezes":[]}`, `{"freezes":[{}]}`, `{"freezes":[{"agents":"a["}]}`, `{"Freezes":[]}`,
		`{"freezes":[{"agents":"*","reason":"odd","by":"me","since":"2026-11-21T03:00:00Z"},{"agents":"a|b*","since":"2026-11-21T03:00:01.5Z","more":1}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := read(kv.Entry{Key: key, Revision: 7, Value: data})
		if err != nil {
			if s != nil || !errors.Is(err, ErrUnreadable) {
				t.Fatalf("%q: %+v, %v", data, s, err)
			}
			return
		}
		if _, err := guard.CompileFreezes(s.Freezes); err != nil || s.Version != 7 {
			t.Fatalf("%q can be read and not be gone by: %+v, %v", data, s, err)
		}
		again, err := schema.Marshal(&stored{s.Freezes})
		if err != nil {
			t.Fatal(err)
		}
		if back, err := read(kv.Entry{Key: key, Revision: 7, Value: again}); err != nil || !cmp.Equal(s, back) {
			t.Fatalf("%q became %q: %v", data, again, err)
		}
	})
}

func TestOnlyADeletedKeyIsNothing(t *testing.T) {
	for name, e := range map[string]kv.Entry{
		"never written": {}, "deleted": {Revision: 4, Kind: kv.Deleted}, "an empty list": {Revision: 4, Value: []byte(`{"freezes":[]}`)},
	} {
		if s, err := read(e); err != nil || s.Version != e.Revision || s.Freezes != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for name, e := range map[string]kv.Entry{
		"an empty value": {Revision: 4, Created: at}, "no list": {Revision: 4, Value: []byte(`{}`)}, "null": {Revision: 4, Value: []byte(`null`)},
		"a list that is null": {Revision: 4, Value: []byte(`{"freezes":null}`)}, "one without agents": {Revision: 4, Value: []byte(`{"freezes":[{"agents":""}]}`)},
		"no pattern": {Revision: 4, Value: []byte(`{"freezes":[{"agents":"a["}]}`)}, "lapsed": {Revision: 4, Kind: kv.Lapsed},
	} {
		if s, err := read(e); !errors.Is(err, ErrUnreadable) || s != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
