package app

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/record"
)

// A blockedWriter blocks writes until it is opened.
type blockedWriter struct {
	open  chan struct{}
	lines int
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	<-w.open
	w.lines++
	return len(p), nil
}

// A reader that is slower than the records learns how many it missed.
func TestTheFeedReportsDroppedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := bustest.Start(t)
		nc := bustest.Connect(t, server, "feed")
		broker := bustest.Connect(t, server, "broker")
		filter, err := record.NewFilter(record.Wish{})
		must(t, err)
		out, stderr := &blockedWriter{open: make(chan struct{})}, new(bytes.Buffer)
		f := &feed{filter: filter, out: out, say: stderr}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.listen(ctx, nc) }()
		synctest.Wait()
		send := func(n int) {
			for range n {
				must(t, broker.Publish("hook.v1.feed.a", []byte(`{"time":"2026-11-21T10:00:00Z","agent":"a","event":"PreToolUse","decision":"allow"}`)))
			}
			synctest.Wait()
		}
		send(1) // its write blocks
		send(liveDepth + 7)
		close(out.open)
		synctest.Wait()
		send(1)
		stop()
		must(t, <-ended)
		if want := "7 records were dropped because this command prints slower than they arrive; "; out.lines != liveDepth+2 || !bytes.HasPrefix(stderr.Bytes(), []byte(want)) || bytes.Count(stderr.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%d records are shown, and stderr is %q; want %d and %q", out.lines, stderr, liveDepth+2, want)
		}
	})
}
