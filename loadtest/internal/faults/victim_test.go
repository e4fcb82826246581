package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
)

// TestMain lets the test program be its own victim: with a role's name as its argument it
// serves that role and ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "role" {
		if err := proc.Serve(context.Background(), proc.Started(startEcho), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startEcho starts a role that answers with its name, and exits on the request "die".
func startEcho(_ context.Context, by string) (*proc.Role, error) {
	return &proc.Role{Do: func(_ context.Context, request []byte) (any, error) {
		if strings.Contains(string(request), "die") {
			os.Exit(7)
		}
		return by, nil
	}}, nil
}

// victim starts a process that runs until the test ends.
func victim(t *testing.T, lost func(error)) *Victim {
	v := NewVictim(Spec{
		Name: "ann", Role: "echo", Config: func(at At) any { return at.By },
		Like: &proc.Crew{Args: []string{"role"}}, Lost: lost,
	})
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.End() })
	return v
}

func asked(t *testing.T, v *Victim) string {
	t.Helper()
	var by string
	if err := v.Ask(t.Context(), "who", &by); err != nil {
		t.Fatal(err)
	}
	return by
}

func TestAKilledProcessIsReplaced(t *testing.T) {
	v := victim(t, func(err error) { t.Errorf("a kill is no surprise: %v", err) })
	if by := asked(t, v); by != "ann.1" {
		t.Errorf("the first one is %s", by)
	}
	first := v.Pid()
	if err := v.Suffer(t.Context(), Fault{Kind: Kill, Member: "ann", For: 1}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the killed process is still there: %v", err)
	}
	if by := asked(t, v); by != "ann.2" || len(v.Killed()) != 1 || v.Killed()[0] != "ann.1" {
		t.Errorf("in its place is %s, killed was %v", by, v.Killed())
	}
	if err := v.End(); err != nil {
		t.Errorf("its end in order gave %v", err)
	}
}

func TestAStoppedProcessAnswersWhenItGoesOn(t *testing.T) {
	v := victim(t, nil)
	ctx, goOn := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- v.Suffer(ctx, Fault{Kind: Stop, Member: "ann", For: seconds(3600)}) }()
	for state(t, v) != 'T' {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(chan error, 1)
	go func() { answered <- v.Ask(t.Context(), "who", nil) }()
	select {
	case err := <-answered:
		t.Fatalf("a stopped process answered: %v", err)
	default:
	}
	goOn()
	if err := errors.Join(<-stopped, <-answered); err != nil {
		t.Error(err)
	}
	if s := state(t, v); s == 'T' {
		t.Error("it is stopped still")
	}
}

// state returns the state of the process in /proc: T is stopped.
func state(t *testing.T, v *Victim) byte {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.Pid()))
	if err != nil {
		t.Skipf("this system has no /proc, so that nobody can see whether a process is stopped: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[0]
}

func TestAProcessThatEndsByItselfIsTold(t *testing.T) {
	lost := make(chan error, 1)
	v := victim(t, func(err error) { lost <- err })
	if err := v.Ask(t.Context(), "die", nil); err == nil {
		t.Fatal("a process that died answered")
	}
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "ann.1 ended unexpectedly") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("what is told is %v", err)
	}
}

func TestWhoAsksAKilledOneIsToldSo(t *testing.T) {
	v := victim(t, nil)
	if err := v.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := v.Ask(t.Context(), "who", nil); !errors.Is(err, ErrKilled) {
		t.Errorf("the error is %v", err)
	}
	if err := v.End(); err != nil {
		t.Errorf("ending a killed one gave %v", err)
	}
}

func TestAFaultOfTheNetworkNeedsOne(t *testing.T) {
	v := victim(t, nil)
	err := v.Suffer(t.Context(), Fault{Kind: Cut, Member: "ann", For: seconds(1)})
	if err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("the error is %v", err)
	}
}

func TestFaultsOfTheNetworkAreUndone(t *testing.T) {
	k, _ := through(t, echo(t))
	v := NewVictim(Spec{Name: "ann", Link: k})
	for _, f := range []Fault{
		{Kind: Cut, For: 1}, {Kind: Delay, For: 1, Latency: seconds(1)}, {Kind: Slow, For: 1, Rate: 5}, {Kind: Reset},
	} {
		if err := v.Suffer(t.Context(), f); err != nil {
			t.Error(err)
		}
		if now, _ := k.conditions(); now != (Conditions{}) {
			t.Errorf("after %v the link does %+v", f, now)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Suffer(ctx, Fault{Kind: Cut, For: seconds(3600)}) }()
	for now, changed := k.conditions(); !now.Cut; now, changed = k.conditions() {
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("the link is not cut")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if now, _ := k.conditions(); now.Cut {
		t.Error("the link is cut still")
	}
}
