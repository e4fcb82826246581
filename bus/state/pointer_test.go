package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAPointerKeepsTheLastThree(t *testing.T) {
	var p pointer
	for v := range uint64(5) {
		p = p.next(v + 1)
	}
	if p.Version != 5 || !slices.Equal(p.Kept, []uint64{5, 4, 3}) {
		t.Errorf("%+v", p)
	}
}

func TestTheLeadersAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		data    string
		version uint64
		fails   bool
	}{
		"a pointer":          {`{"message":{"seq":4,"data":"eyJ2ZXJzaW9uIjo3LCJrZXB0IjpbN119"}}`, 7, false},
		"nothing there":      {`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`, 0, false},
		"no leader":          {`{"error":{"code":503,"err_code":10008}}`, 0, true},
		"a deleted key":      {`{"message":{"seq":4}}`, 0, true},
		"no answer at all":   {`{}`, 0, true},
		"another key's data": {`{"message":{"seq":4,"data":"eyJhIjoxfQ=="}}`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var l lastMsg
			if err := schema.Unmarshal([]byte(c.data), &l); err != nil {
				t.Fatal(err)
			}
			p, _, err := l.pointer()
			if p.Version != c.version || (err != nil) != c.fails {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestAPIPrefix(t *testing.T) {
	for want, o := range map[string]jetstream.JetStreamOptions{
		"$JS.API.":     {},
		"$JS.hub.API.": {Domain: "hub"},
		"imported.js.": {APIPrefix: "imported.js"},
		"dotted.js.":   {APIPrefix: "dotted.js."},
	} {
		if got := apiPrefix(o); got != want {
			t.Errorf("apiPrefix(%+v) = %q; want %q", o, got, want)
		}
	}
}

func TestWhatPasses(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nobody answers":    {fmt.Errorf("x: %w", nats.ErrNoResponders), true},
		"no answer in time": {context.DeadlineExceeded, true},
		"no leader":         {&jetstream.APIError{Code: 503}, true},
		"a wrong request":   {&jetstream.APIError{Code: 400}, false},
		"something else":    {errors.New("x"), false},
	} {
		if got := passing(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParsePointer(f *testing.F) {
	f.Add([]byte(`{"version":7,"kept":[7,6]}`))
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
		if back, err := parsePointer(again); err != nil || back.Version != p.Version || !slices.Equal(back.Kept, p.Kept) {
			t.Errorf("%+v is read back as %+v, %v", p, back, err)
		}
	})
}
