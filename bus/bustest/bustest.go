// Package bustest is the harness of the tests of the bus: NATS servers ([Start]), network paths ([Wire],
// [Between]), free addresses, certificates ([Authority]), a fake fabric for clients ([Fabric]), and the
// contract's table of decisions ([Cells]).
//
// Its servers are real ones with JetStream and a data directory of their own. They have no listener, so that
// they also run inside a bubble of testing/synctest.
//
// In a bubble, use only the context forms of requests and flushes, and do not run such
// tests in parallel: NATS shares timers among connections. A package with such tests
// calls [Main] in its TestMain.
package bustest

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Main runs the tests of a package that starts servers in bubbles. It starts the clock that all servers of a process
// share outside of the bubbles.
//
// With the race detector properties try only a few cases, unless -rapid.checks or RAPID_CHECKS sets a number.
func Main(m *testing.M) {
	ats.Register()
	Overlap()
	if Raced {
		fewCases()
	}
	os.Exit(m.Run())
}

// overlapping is how many parallel tests run at a time.
const overlapping = 4

// Overlap makes more parallel tests run at a time than there are CPUs, because they mostly wait for processes and
// networks. The flag -parallel overrides it. [Main] calls it.
func Overlap() {
	if runtime.GOMAXPROCS(0) < overlapping {
		_ = flag.Set("test.parallel", strconv.Itoa(overlapping)) // a valid number
	}
}

// fewCases makes properties of rapid try few cases.
func fewCases() {
	flag.Parse()
	_, given := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !given {
		_ = f.Value.Set("10") // a valid number
	}
}

// PlainOnly skips a test with the race detector, with which it would take very long and show no more than others;
// why is what it checks without the detector.
func PlainOnly(t testing.TB, why string) {
	t.Helper()
	if Raced {
		t.Skip("the race detector is on: only the plain run holds " + why)
	}
}

// Start runs a server that ends with the test.
func Start(t testing.TB) *server.Server {
	t.Helper()
	return StartWith(t, server.Options{})
}

// StartWith is Start with options. An empty Dir is a temporary one. The default of SyncInterval is one minute, which is
// faster.
func StartWith(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	// Timers of another bubble in a pool must not be used in this one.
	runtime.GC()
	runtime.GC()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = time.Minute
	}
	s, err := server.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		Settle()
	})
	return s
}

// Settle waits for goroutines of the client library, which checks every 100 ms whether a drained subscription is empty. A
// bubble must not end before them. Outside of bubbles, whose clocks begin in the year 2000, Settle returns at once.
func Settle() {
	if time.Now().Year() < 2020 {
		<-time.After(150 * time.Millisecond)
	}
}

// Connect connects to s until the test ends.
func Connect(t testing.TB, s *server.Server, name string) *nats.Conn {
	t.Helper()
	nc, err := s.Connect(context.Background(), bus.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStream connects to the streams of s until the test ends.
func JetStream(t testing.TB, s *server.Server) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(Connect(t, s, t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
