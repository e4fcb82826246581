package kv

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAPIPrefix(t *testing.T) {
	for want, o := range map[string]jetstream.JetStreamOptions{
		"$JS.API.":     {},
		"$JS.hub.API.": {Domain: "hub"},
		"imported.js.": {APIPrefix: "imported.js"},
		"dotted.js.":   {APIPrefix: "dotted.js."},
	} {
		if got := APIPrefix(o); got != want {
			t.Errorf("APIPrefix(%+v) = %q; want %q", o, got, want)
		}
	}
}

func TestPassing(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no responders":     {fmt.Errorf("x: %w", nats.ErrNoResponders), true},
		"no answer in time": {context.DeadlineExceeded, true},
		"no leader":         {&jetstream.APIError{Code: 503}, true},
		"a wrong request":   {&jetstream.APIError{Code: 400}, false},
		"something else":    {errors.New("x"), false},
	} {
		if got := Passing(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestARequestWithoutAnAnswerIsRepeated repeats one that a server forgot when it restarted JetStream.
func TestARequestWithoutAnAnswerIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tries, began := 0, time.Now()
		err := Retry(ctx, func(ctx context.Context) (bool, error) {
			if tries++; tries == 1 {
				<-ctx.Done()
				return false, ctx.Err()
			}
			return true, nil
		})
		if took := time.Since(began); err != nil || tries != 2 || took > TryFor+2*time.Second {
			t.Errorf("%d tries in %v: %v", tries, took, err)
		}
	})
}

func TestOpening(t *testing.T) {
	unknown := &jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound}
	if !Opening(fmt.Errorf("x: %w", unknown)) || !Opening(jetstream.ErrBucketNotFound) || Passing(unknown) || Opening(errors.New("x")) {
		t.Error("only Opening waits for a stream that a leader does not have yet")
	}
}

func TestTheLeadersAnswerIsDecoded(t *testing.T) {
	header := base64.StdEncoding.EncodeToString([]byte("NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n"))
	for name, c := range map[string]struct {
		answer, want string
		fails        bool
	}{
		"a value":          {`{"message":{"subject":"p.a.b","seq":4,"data":"Zm9v"}}`, "a.b 4 foo 0", false},
		"a lapsed key":     {`{"message":{"subject":"p.a","seq":4,"hdrs":"` + header + `"}}`, "a 4  2", false},
		"no message":       {`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`, " 0  0", false},
		"no leader":        {`{"error":{"code":503,"err_code":10008}}`, " 0  0", true},
		"no answer at all": {`{}`, " 0  0", true},
		"a broken header":  {`{"message":{"subject":"p.a","seq":4,"hdrs":"Zm9v"}}`, " 0  0", true},
	} {
		t.Run(name, func(t *testing.T) {
			var s stored
			if err := schema.Unmarshal([]byte(c.answer), &s); err != nil {
				t.Fatal(err)
			}
			e, err := s.entry("p.")
			if got := fmt.Sprintf("%s %d %s %d", e.Key, e.Revision, e.Value, e.Kind); got != c.want || (err != nil) != c.fails {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
