package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server"
)

// A damaged stream must not be replaced with an empty one unless an operator permits it.
func TestDamagedStreamsAreReported(t *testing.T) {
	dir := t.TempDir()
	start := func() (*server.Server, error) { return server.Start(t.Context(), server.Options{Dir: dir}) }
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect(t.Context(), bus.Options{Name: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{"whole", "freezes"} {
		kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.PutString(t.Context(), "all", "frozen"); err != nil {
			t.Fatal(err)
		}
	}
	nc.Close()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "jetstream", "*", "streams", "KV_freezes"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the bucket lies in %q, %v", found, err)
	}
	for _, file := range []string{"meta.inf", "meta.sum"} {
		path := filepath.Join(found[0], file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = start()
		wantError(t, err, found[0]+" is damaged: its metadata cannot be read; restore the data directory from a backup")
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The server renames a stream like that before it deletes it, and may be killed then.
	leaving := filepath.Join(filepath.Dir(found[0]), ".KV_gone", "msgs")
	if err := errors.Join(os.MkdirAll(leaving, 0o700), os.WriteFile(filepath.Join(leaving, "1.blk"), []byte("rest"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if s, err = start(); err != nil {
		t.Fatal("as it was:", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(filepath.Dir(found[0]), "KV_begun", "msgs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s, err = start(); err != nil {
		t.Fatal("a stream that holds nothing keeps the server from starting:", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that keeps nothing yet wants room for all that a broker makes first.
func TestTheLeastFreeSpaceForAStart(t *testing.T) {
	fresh, used := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(used, "nats"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    server.Options
		want int64
	}{
		"one that is new":               {server.Options{Dir: fresh}, 240 << 20},
		"one that was there":            {server.Options{Dir: used}, 64 << 20},
		"one with a limit of its store": {server.Options{Dir: fresh, MaxStore: 1 << 20}, 64 << 20},
		"a leaf":                        {server.Options{Dir: fresh, Leaf: &server.Leaf{Remotes: []string{"tls://hub:7422"}}}, 64 << 20},
		"a hub":                         {server.Options{Dir: fresh, Leaf: &server.Leaf{Listen: "127.0.0.1:0"}}, 240 << 20},
	} {
		if got := server.LeastRoom(c.o); got != c.want {
			t.Errorf("%s wants %d MiB, not %d", name, got>>20, c.want>>20)
		}
	}
}

func TestFilesThatAreDeletedDuringSizeOfCountNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, leaving := filepath.Join(dir, "kept"), filepath.Join(dir, "leaving", "msgs")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			_ = errors.Join(os.MkdirAll(leaving, 0o700), os.WriteFile(filepath.Join(leaving, "1.blk"), []byte("rest"), 0o600), os.RemoveAll(filepath.Dir(leaving)))
		}
	})
	defer deleting.Wait()
	defer close(over)
	for range 2000 {
		if size, err := server.SizeOf(dir); err != nil || size != 4 && size != 8 {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
}
