package record

import (
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// usual is what is written down of a call of three hooks, whose event has 1 KiB.
func usual() Entry { return call(3) }

// call is what is written down of a call of so many hooks, with ids and inputs of its own.
func call(hooks int) Entry {
	id := uuid.Must(uuid.NewV7()).String()
	body := `{"hook_type":"PreToolUse","event_id":"` + id + `","session_id":"7be05901-cf1a-4925","agent_id":"agent1","runtime":"claude",` +
		`"timestamp":"2026-11-21T10:00:00.25Z","tool_name":"Bash","tool_kind":"shell","tool_input":{"command":"make test 2>&1 | tail -n 40 # ` + id + strings.Repeat("x", 700) + `","timeout":120},"tool_use_id":"toolu_01"}`
	executed := make([]schema.ExecutedHook, hooks)
	for i := range executed {
		executed[i] = schema.ExecutedHook{Hook: "hook-" + strconv.Itoa(i), Decision: schema.Allow, Outcome: schema.OK, Duration: schema.Duration(1500 + rand.IntN(1000)), Worker: "node-a-17-x3k9"}
	}
	return Entry{Body: []byte(body), Record: &schema.Record{
		Time: time.Now().UTC(), EventID: id, Event: schema.PreToolUse, Agent: "agent1", Session: "7be05901-cf1a-4925",
		Tool: "Bash", Decision: schema.Allow, ExecutedHooks: executed, ConfigVersion: 7, Took: schema.Duration(100_000 + rand.IntN(100_000)),
	}}
}

// processor is how much time of processors this process has used: what others do on
// the machine is not in it.
func processor() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0 // it cannot fail with this
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func reported(b *testing.B, do func()) {
	b.Helper()
	before := processor()
	do()
	b.ReportMetric(float64(processor()-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkPut is what a call pays for its record.
func BenchmarkPut(b *testing.B) {
	e := usual()
	w := &Writer{o: Options{Dropped: func(Cause, int) {}}, wake: make(chan struct{}, 1), due: make(chan struct{}, 1), flush: time.NewTimer(time.Hour)}
	b.ReportAllocs()
	reported(b, func() {
		for b.Loop() {
			if w.Put(e); len(w.waiting) == maxLines {
				w.waiting, w.bytes = w.waiting[:0], 0
			}
		}
	})
}

// BenchmarkLine is what is done off the path for each.
func BenchmarkLine(b *testing.B) {
	for name, content := range map[string]bool{"facts": false, "content": true} {
		b.Run(name, func(b *testing.B) {
			e, c := usual(), newEncoder(&Options{Broker: "node-a-17-x3k9", Content: content})
			b.ReportAllocs()
			reported(b, func() {
				for b.Loop() {
					if _, err := c.line(&e, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkStore compares ways to have a record on the disk of a server that syncs
// each write: many in a message, each alone, and each alone in a stream that says
// that it has what it has not written yet.
func BenchmarkStore(b *testing.B) {
	for name, c := range map[string]struct {
		lines int
		async bool
		ack   bool
	}{
		"many in a message": {maxLines, false, true}, "each alone": {1, false, true}, "each alone, async": {1, true, true}, "each alone, async, without an ack": {1, true, false},
	} {
		b.Run(name, func(b *testing.B) {
			s, err := server.Start(b.Context(), server.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(b.Context())
			js, err := jetstream.New(bustest.Connect(b, s, "bench"))
			if err != nil {
				b.Fatal(err)
			}
			cfg := Limits{}.config()
			if c.async {
				cfg.PersistMode = jetstream.AsyncPersistMode
			}
			if _, err := js.CreateStream(b.Context(), cfg); err != nil {
				b.Fatal(err)
			}
			e := usual()
			line, err := newEncoder(&Options{Broker: "b"}).line(&e, 0)
			if err != nil {
				b.Fatal(err)
			}
			reported(b, func() {
				page := newPage()
				for b.Loop() {
					if page.add(line); page.lines < c.lines {
						continue
					}
					m := (&batch{data: page.tear(nil)}).message("hook.v1.record.b")
					if c.ack {
						_, err = js.PublishMsg(b.Context(), m)
					} else {
						err = js.Conn().PublishMsg(m)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkWrite is all that a record takes, from the call that puts it to the disk.
func BenchmarkWrite(b *testing.B) {
	for _, hooks := range []int{3, 8} {
		b.Run(strconv.Itoa(hooks)+" hooks", func(b *testing.B) {
			s, err := server.Start(b.Context(), server.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(b.Context())
			js, err := jetstream.New(bustest.Connect(b, s, "bench"))
			if err != nil {
				b.Fatal(err)
			}
			debug.SetGCPercent(400) // as in a broker
			defer debug.SetGCPercent(100)
			written, waiting, put := make(chan int, maxWaiting), 0, 0
			w, err := Start(js, Options{Broker: "node-a-17-x3k9", Written: func(n int) { written <- n }, Dropped: func(c Cause, n int) { b.Errorf("%d records were dropped: %s", n, c) }})
			if err != nil {
				b.Fatal(err)
			}
			calls := make([]Entry, 1024) // more than a processor has at hand
			for i := range calls {
				calls[i] = call(hooks)
			}
			b.ReportAllocs()
			reported(b, func() {
				for b.Loop() {
					w.Put(calls[put%len(calls)])
					put++
					for waiting++; waiting > maxWaiting/2; {
						waiting -= <-written
					}
				}
				if err := w.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
