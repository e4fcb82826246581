// Package bustest starts NATS servers for tests: real servers with JetStream and a data
// directory of their own. They have no listener, so that they also run inside a bubble of
// testing/synctest.
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
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Main runs the tests of a package that starts servers in bubbles. The clock
// that all servers of a process share then belongs to none of the bubbles.
//
// Under the race detector properties try a few cases, for it finds races and not
// rare laws, unless -rapid.checks or RAPID_CHECKS says how many.
func Main(m *testing.M) {
	ats.Register()
	if Raced {
		fewCases()
	}
	os.Exit(m.Run())
}

// fewCases has properties of rapid, if there are any, try as few cases as show
// what they do at the same time.
func fewCases() {
	flag.Parse()
	_, given := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !given {
		_ = f.Value.Set("10") // which it takes: it is a number
	}
}

// PlainOnly skips a test under the race detector, where it would take very long
// and show no more than others do; why says what it holds in the plain run.
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

// StartWith is Start with options; an empty Dir is a temporary one, and an
// interval of one minute replaces syncing always, which tests need not wait for.
func StartWith(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	// Timers that another bubble left in a pool must not be met in this one.
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

// Settle waits until the client library has noticed that everything ended: it
// looks every 100 ms whether a subscription that is drained is empty, and a
// bubble must not end before it has looked.
func Settle() { <-time.After(150 * time.Millisecond) }

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
