package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test program be its own child: with a role's name as its argument it
// serves that role and ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "role" {
		if err := Serve(context.Background(), roles()[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type hello struct {
	Name string `json:"name"`
}

func roles() map[string]Start {
	return map[string]Start{
		"echo":   Started(startEcho),
		"broken": Started(func(context.Context, hello) (*Role, error) { return nil, errors.New("the port is taken") }),
		"settings": Started(func(context.Context, hello) (*Role, error) {
			return &Role{Facts: hello{os.Getenv("HOOKFABRIC_NATS") + os.Getenv("USUAL")}}, nil
		}),
		"sulky": Started(func(context.Context, hello) (*Role, error) {
			return &Role{Close: func() error { return errors.New("the door is jammed") }}, nil
		}),
		"stuck": Started(func(ctx context.Context, _ hello) (*Role, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}),
		"parent": Started(startParent),
	}
}

func startEcho(_ context.Context, config hello) (*Role, error) {
	return &Role{
		Facts: hello{Name: "I am " + config.Name},
		Do: func(_ context.Context, request []byte) (any, error) {
			if strings.Contains(string(request), "die") {
				os.Exit(7)
			}
			if strings.Contains(string(request), "refuse") {
				return nil, errors.New("no")
			}
			return hello{Name: config.Name + " heard"}, nil
		},
	}, nil
}

// startParent starts a child that inherits standard error.
func startParent(ctx context.Context, config hello) (*Role, error) {
	crew := &Crew{Args: []string{"role"}, Log: os.Stderr}
	_, err := crew.Start(ctx, "echo", config, nil)
	return &Role{Close: crew.Stop}, err
}

func crew(t *testing.T) *Crew {
	c := &Crew{Args: []string{"role"}}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func TestAChildAnswersInOrder(t *testing.T) {
	var facts hello
	child, err := crew(t).Start(t.Context(), "echo", hello{"Ann"}, &facts)
	if err != nil || facts.Name != "I am Ann" {
		t.Fatalf("started with %+v, %v", facts, err)
	}
	for range 3 {
		var got hello
		if err := child.Ask(t.Context(), hello{"x"}, &got); err != nil || got.Name != "Ann heard" {
			t.Fatalf("answered %+v, %v", got, err)
		}
	}
	if err := child.Ask(t.Context(), hello{"refuse"}, nil); err == nil || err.Error() != "no" {
		t.Errorf("a refusal arrived as %v", err)
	}
	if err := child.Stop(); err != nil {
		t.Errorf("an obedient child ended with %v", err)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	_, err := crew(t).Start(t.Context(), "broken", hello{}, nil)
	if err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("the error is %v", err)
	}
}

func TestAChildThatEndsBadlySaysWhy(t *testing.T) {
	child, err := crew(t).Start(t.Context(), "sulky", hello{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "the door is jammed") {
		t.Errorf("the error is %v", err)
	}
}

func TestAChildDoesNotMeetTheFabricOfWhoeverRunsIt(t *testing.T) {
	t.Setenv("HOOKFABRIC_NATS", "nats://fabric.example:4222")
	t.Setenv("USUAL", "as ever")
	var got hello
	if _, err := crew(t).Start(t.Context(), "settings", hello{}, &got); err != nil || got.Name != "as ever" {
		t.Errorf("it finds %q, %v", got.Name, err)
	}
}

func TestAChildThatDiesIsNoticed(t *testing.T) {
	child, err := crew(t).Start(t.Context(), "echo", hello{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = child.Ask(t.Context(), hello{"die"}, nil)
	if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("the error is %v", err)
	}
}

func TestAChildThatIsKilledIsGone(t *testing.T) {
	c := crew(t)
	child, err := c.Start(t.Context(), "echo", hello{"Ann"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Kill(); err != nil {
		t.Fatal(err)
	}
	<-child.Ended()
	if err := syscall.Kill(child.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("its process is still there: %v", err)
	}
	if err := errors.Join(child.Kill(), c.Stop()); err != nil {
		t.Errorf("ending it again gave %v", err)
	}
}

func TestAStartThatHangsEndsWithItsParent(t *testing.T) {
	c := crew(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := c.Start(ctx, "stuck", hello{}, nil); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
	_ = c.Stop()
	if n := len(c.children); n != 0 {
		t.Errorf("%d children are left", n)
	}
}

// TestNoOrphans kills a parent without warning. The parent and its child hold the writing
// end of the pipe, as their standard error. The reader sees the end of the pipe when both
// have ended.
func TestNoOrphans(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := crew(t)
	c.Log = w
	parent, err := c.Start(t.Context(), "parent", hello{"child"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := syscall.Kill(parent.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(2 * grace)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("the parent's child is still there: %v", err)
	}
}
