package account

import (
	"bytes"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func TestPurposeOfAStack(t *testing.T) {
	const (
		server = "github.com/nats-io/nats-server/v2/server.(*client).flushOutbound"
		serve  = project + "bus/aggregator/internal/intake.(*receiver).serve"
		wave   = project + "bus/dispatch.(*call).wave"
	)
	for want, stacks := range map[Purpose][][]string{
		Sockets:  {{"internal/runtime/syscall/linux.Syscall6", "syscall.write", "internal/poll.(*FD).Writev", server}},
		Server:   {{"runtime.memmove", server}},
		Client:   {{"github.com/nats-io/nats%2ego.(*Conn).parse"}, {project + "bus.ParseEventMsg", serve}},
		HandOffs: {{"runtime.futex", "runtime.notewakeup", "runtime.ready", server}, {"runtime.findRunnable", "runtime.schedule", "runtime.mcall"}, {"runtime.selectgo", "net.(*pipe).read", server}},
		Memory:   {{"runtime.scanObject", "runtime.gcDrain", "runtime.gcBgMarkWorker"}, {"runtime.nextFreeFast", "runtime.mallocgc", "github.com/go-json-experiment/json.Unmarshal", wave}},
		JSON:     {{project + "schema/plainjson.(*scanner).skip", project + "schema.DecodeEvent", project + "workers.(*Worker).run", wave, serve}},
		Record:   {{project + "schema/plainjson.(*object).append", project + "bus/state/record.(*Writer).encode"}},
		Reports:  {{"sync/atomic.(*Uint64).Add", "github.com/prometheus/client_golang/prometheus.(*counter).Inc", project + "bus/aggregator.(*judging).answer", serve}},
		Limits:   {{project + "bus/aggregator/ratelimit.(*Table).Take", serve}, {"time.Now", serve}},
		Planning: {{project + "bus/dispatch.(*Snapshot).Plan", serve}},
		Hooks:    {{project + "builtin.allow", project + "workers.(*Worker).run", wave}, {"time.Now", wave, serve}},
		Steps:    {{project + "bus/state/queue.(*Queue).see", serve}},
		Other:    {{"main.main"}, {}},
	} {
		for _, stack := range stacks {
			if got := purposeOf(stack); got != want {
				t.Errorf("%q is for %q; want %q", stack, got, want)
			}
		}
	}
	if n := len(Purposes()); n != len(slices.Compact(slices.Sorted(slices.Values(Purposes())))) || n != 13 {
		t.Errorf("%d purposes: %q", n, Purposes())
	}
}

func TestTheTimeOfAProfile(t *testing.T) {
	var data bytes.Buffer
	if err := pprof.StartCPUProfile(&data); err != nil {
		t.Fatal(err)
	}
	for began, n := time.Now(), 0; time.Since(began) < 200*time.Millisecond; n++ {
		_ = bytes.Repeat([]byte("x"), n%1000)
	}
	pprof.StopCPUProfile()
	spent, err := Of(data.Bytes(), "no such function")
	if err != nil {
		t.Fatal(err)
	}
	var sum schema.Duration
	for _, d := range spent {
		sum += d
	}
	none, err := Of(data.Bytes(), "testing.tRunner")
	if sum == 0 || err != nil || none[Other] >= sum {
		t.Errorf("%v in all; without the test %v (%v)", spent, none, err)
	}
	if _, err := Of([]byte("junk"), ""); err == nil {
		t.Error("junk is a profile")
	}
}
