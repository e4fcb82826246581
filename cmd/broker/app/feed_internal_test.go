package app

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/record"
)

// A turnstile lets nothing be written before it is opened.
type turnstile struct {
	open  chan struct{}
	lines int
}

func (w *turnstile) Write(p []byte) (int, error) {
	<-w.open
	w.lines++
	return len(p), nil
}

// Whoever reads more slowly than records come is told how many he did not see.
func TestTheFeedSaysWhatItDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := bustest.Start(t)
		nc := bustest.Connect(t, server, "feed")
		broker := bustest.Connect(t, server, "broker")
		filter, err := record.NewFilter(record.Wish{})
		must(t, err)
		out, said := &turnstile{open: make(chan struct{})}, new(bytes.Buffer)
		f := &feed{filter: filter, out: out, say: said}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.listen(ctx, nc) }()
		synctest.Wait()
		tell := func(n int) {
			for range n {
				must(t, broker.Publish("hook.v1.feed.a", []byte(`{"time":"2026-11-21T10:00:00Z","agent":"a","event":"PreToolUse","decision":"allow"}`)))
			}
			synctest.Wait()
		}
		tell(1) // which is being written
		tell(toldDepth + 7)
		close(out.open)
		synctest.Wait()
		tell(1)
		stop()
		must(t, <-ended)
		if want := "7 records were dropped because this command prints slower than they arrive; "; out.lines != toldDepth+2 || !bytes.HasPrefix(said.Bytes(), []byte(want)) || bytes.Count(said.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%d records are shown, and it says %q; want %d and %q", out.lines, said, toldDepth+2, want)
		}
	})
}
