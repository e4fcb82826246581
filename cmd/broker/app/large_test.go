package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

// withObjects makes the object store that a broker would make.
func withObjects(t *testing.T, s *fakeControl) *objects.Objects {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := objects.Open(ctx, js, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// contentOf returns an object's content.
func contentOf(t *testing.T, store *objects.Objects, o *schema.Object) []byte {
	t.Helper()
	if o == nil {
		t.Fatal("no object is named")
	}
	var all []byte
	for int64(len(all)) < o.Size {
		part, size, err := store.Part(t.Context(), o.Digest, int64(len(all)))
		if err != nil || size != o.Size || len(part) == 0 {
			t.Fatalf("part at %d of %+v: %d bytes of %d: %v", len(all), o, len(part), size, err)
		}
		all = append(all, part...)
	}
	return all
}

// request returns the only request, which must have that subject.
func request[T any](t *testing.T, got commandRun, subject string) (req T) {
	t.Helper()
	if got.Code != 0 || len(got.Asked) != 1 {
		t.Fatalf("%+v", got)
	}
	body, ok := strings.CutPrefix(got.Asked[0], subject+" ")
	if !ok {
		t.Fatalf("asked %s, want %s", got.Asked[0], subject)
	}
	if err := schema.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestLongTextsGoThroughTheObjectStore(t *testing.T) {
	s := newFakeControl(t)
	store := withObjects(t, s)
	answers := map[string]any{"inject.a": schema.Receipt{Key: "k", State: schema.Queued}}
	for _, c := range []struct {
		name, text string
		stored     bool
	}{
		{"the longest text in the request", strings.Repeat("x", 256<<10), false},
		{"a longer text", strings.Repeat("x", 256<<10+1), true},
		{"a text longer than a message", strings.Repeat("x\n", 5<<20), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.run(answers, c.text+"\n", "inject", "--agent", "a", "-")
			req := request[schema.InjectRequest](t, got, "inject.a")
			switch {
			case !c.stored && (req.Content != c.text || req.Object != nil):
				t.Errorf("%d bytes of %d in the request, object %+v", len(req.Content), len(c.text), req.Object)
			case c.stored && (req.Content != "" || !bytes.Equal(contentOf(t, store, req.Object), []byte(c.text))):
				t.Errorf("%d bytes in the request, object %+v is another text", len(req.Content), req.Object)
			}
		})
	}
}

func TestALongTextWithoutAStoreIsNotSent(t *testing.T) {
	s := newFakeControl(t)
	got := s.run(nil, strings.Repeat("x", 1<<20), "inject", "--agent", "a", "-")
	if got.Code != 1 || got.Asked != nil || !strings.Contains(got.Stderr, "cannot store the text, which is too long for a message: ") {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerSharesTheWorkspace(t *testing.T) {
	s := newFakeControl(t)
	store := withObjects(t, s)
	t.Chdir(t.TempDir())
	write(t, "work/parse/parse.go", "package parse\n")
	if err := os.Symlink("/etc/passwd", "work/outside"); err != nil {
		t.Fatal(err)
	}
	receipt := schema.AnswerReceipt{Receipt: schema.Receipt{Key: "k", Sequence: 1, State: schema.Queued}, Name: "agent1", Label: "agent1.1"}
	got := s.run(map[string]any{"relay.bob": receipt}, "", "answer", "--session", "s1", "--agent", "bob", "--workspace", "work", "done")
	req := request[schema.AnswerRequest](t, got, "relay.bob")
	if req.Workspace != cwd(t, "work") || req.Content != "done" || req.Session != "s1" {
		t.Errorf("%+v", req)
	}
	if want := "left out of the workspace: outside is a link that leads out of the folder\n"; got.Stderr != want {
		t.Errorf("stderr is %q, want %q", got.Stderr, want)
	}
	if !strings.HasPrefix(got.Stdout, "agent1.1 goes to the other agents of session s1, with the workspace (") {
		t.Errorf("stdout is %q", got.Stdout)
	}
	to := filepath.Join(t.TempDir(), "there")
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(contentOf(t, store, req.Snapshot)), to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(to, "parse", "parse.go"))
	if err != nil || string(text) != "package parse\n" {
		t.Errorf("%q: %v", text, err)
	}
}

func TestAnAnswerWithAnUnreadableWorkspaceIsNotSent(t *testing.T) {
	s := newFakeControl(t)
	withObjects(t, s)
	t.Chdir(t.TempDir())
	write(t, "file", "no folder")
	for _, dir := range []string{"gone", "file"} {
		got := s.run(nil, "", "answer", "--session", "s1", "--agent", "bob", "--workspace", dir, "done")
		if got.Code != 1 || got.Asked != nil || !strings.Contains(got.Stderr, "packing the folder "+cwd(t, dir)) || strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("%s: %+v", dir, got)
		}
	}
}
