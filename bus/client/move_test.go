package client_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A client whose server stops goes to another one between two calls. The call in progress
// ends, the next one waits, and neither is asked twice.
func TestAClientLeavesAStoppingServerBetweenCalls(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a short call": 200 * time.Millisecond, "a long call": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, client.Options{})
				f.serve(func(q *question) {
					beats := time.NewTicker(schema.BeatEvery)
					go func() {
						for range int(takes / schema.BeatEvery) {
							<-beats.C
							q.beat()
						}
						beats.Stop()
					}()
					time.AfterFunc(takes, func() { q.answer(schema.Allow, "") })
				})
				var both sync.WaitGroup
				ask := func() {
					if _, err := f.ask(10 * time.Second); err != nil {
						t.Error(err)
					}
				}
				both.Go(ask)
				synctest.Wait()
				f.client.Leaving()
				synctest.Wait()
				both.Go(ask)
				synctest.Wait()
				if n := len(f.questions()); n != 1 {
					t.Errorf("%d calls are in progress while the client leaves", n)
				}
				both.Wait()
				<-time.After(time.Second) // a client that was never idle moves now
				for _, q := range f.questions() {
					if q.Attempt != 1 {
						t.Errorf("a call was asked %d times", q.Attempt)
					}
				}
				if n := f.client.Moves(); n != 1 {
					t.Errorf("the client went to another server %d times", n)
				}
			})
		})
	}
}
