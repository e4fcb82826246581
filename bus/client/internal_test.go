package client

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTheBlockingOneOfTwoAnswersCounts(t *testing.T) {
	const (
		allow = `{"decision":"allow"}`
		deny  = `{"decision":"deny"}`
		fail  = `{"decision":"fail"}`
		junk  = `{`
	)
	cases := []struct {
		name          string
		attempt       int
		event         schema.EventType
		first, second string
		want          schema.Decision
	}{
		{"a deny that comes second", 2, schema.PreToolUse, allow, deny, schema.Deny},
		{"a deny that comes first", 2, schema.PreToolUse, deny, allow, schema.Deny},
		{"a fail that comes second", 2, schema.PreToolUse, allow, fail, schema.Fail},
		{"two that allow", 2, schema.PreToolUse, allow, allow, schema.Allow},
		{"a sound one behind junk", 2, schema.PreToolUse, junk, allow, schema.Allow},
		{"a deny behind junk", 2, schema.PreToolUse, junk, deny, schema.Deny},
		{"junk behind a sound one", 2, schema.PreToolUse, allow, junk, schema.Allow},
		{"feedback does not block", 2, schema.PostToolUse, `{"decision":"continue"}`, deny, schema.Continue},
		{"what was asked once has one answer", 1, schema.PreToolUse, allow, deny, schema.Allow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := &ask{replyInbox: &replyInbox{answers: make(chan *nats.Msg, 4)}, c: &Client{}, attempt: c.attempt, routing: schema.Routing{Event: c.event}}
			a.answers <- &nats.Msg{Header: nats.Header{"Status": {"503"}}}
			a.answers <- &nats.Msg{Data: []byte(c.second)}
			v, err := a.verdict(&nats.Msg{Data: []byte(c.first)})
			if err != nil || v.Decision != c.want {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestAStoppedProcessDoesNotCountSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		a := &ask{end: now.Add(time.Minute)}
		if due := a.next(); due != now.Add(schema.BeatEvery) {
			t.Errorf("a beat is due at %v", due)
		}
		for i, late := range []time.Duration{0, schema.BeatEvery, schema.BeatEvery + 1, 0, 0, 10 * time.Second, 0, schema.BeatEvery} {
			if err := a.silent(now.Add(-late)); err != nil {
				t.Errorf("look %d, %v late: %v", i, late, err)
			}
		}
		if err := a.silent(now); !errors.Is(err, errSilent) {
			t.Errorf("after %d beats that were missed: %v", schema.Missed, err)
		}
		a.end = now
		if due := a.next(); due != now {
			t.Errorf("at the end a beat is due at %v", due)
		}
		if err := a.silent(now.Add(-10 * time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end: %v", err)
		}
	})
}

func TestAnArrivedAnswerPrecedesReasonsToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		close(gone)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // select picks at random
			a := &ask{replyInbox: &replyInbox{answers: make(chan *nats.Msg, 1)}, c: &Client{closed: gone}, end: time.Now()}
			a.answers <- &nats.Msg{Data: []byte("{}")}
			if _, err := a.listen(ctx, gone); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A server may accept messages shorter than a part.
func TestPartsFitIntoTheServersMessages(t *testing.T) {
	large := append(bytes.Repeat([]byte("x"), 3<<20), '\n')
	lines := [][]byte{[]byte("a\n"), large, []byte("b\n")}
	for _, most := range []int{schema.MaxPart, 700_000, partMost} {
		parts, rest := cut(lines, most)
		for i, p := range parts {
			if len(p) > most {
				t.Errorf("of at most %d: part %d has %d bytes", most, i, len(p))
			}
		}
		if got := append(bytes.Join(parts, nil), bytes.Join(rest, nil)...); !bytes.Equal(got, bytes.Join(lines, nil)) {
			t.Errorf("of at most %d: together they differ from the conversation", most)
		}
	}
}
