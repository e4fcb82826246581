package kept

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func unjudged(i int) schema.Unjudged {
	return schema.Unjudged{
		EventID: fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", i), Time: time.Unix(int64(i), 0).UTC(), Agent: "a", Event: schema.PreToolUse,
		Tool: strings.Repeat("t", 300), Decision: schema.Continue, Why: strings.Repeat("w", 600),
	}
}

// The record has an end: the oldest are forgotten, and counted.
func TestTheRecordIsBounded(t *testing.T) {
	r := Folder(t.TempDir()).Record("f", "nats://there")
	const most = 4000
	for i := range most {
		if err := r.Add(unjudged(i)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(r.dir, unjudgedFile)); err != nil || info.Size() > maxUnjudged {
		t.Errorf("%v, %v", info.Size(), err)
	}
	lost, next := 0, -1
	for !r.Empty() {
		calls, err := r.First("a", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range calls {
			if lost += u.Lost; u.Lost > 0 {
				continue
			}
			if n := int(u.Time.Unix()); next < 0 || n == next {
				next = n + 1
			} else {
				t.Fatalf("after %d comes %d", next-1, n)
			}
			if len(u.Tool) != maxText || len(u.Why) != schema.MaxWhy {
				t.Errorf("%d and %d bytes", len(u.Tool), len(u.Why))
			}
		}
		if err := r.Known(calls); err != nil {
			t.Fatal(err)
		}
	}
	if first := most - lost; next != most || lost == 0 || first < maxUnjudged/2/1200 {
		t.Errorf("%d of %d are lost, and %d came, up to %d", lost, most, first, next)
	}
}

// An id that nobody can hand in is replaced, so that the call is not lost.
func TestACallWithoutAnIDGetsOne(t *testing.T) {
	r := Folder(t.TempDir()).Record("", "nats://there")
	u := unjudged(1)
	u.EventID = "mine"
	if err := r.Add(u); err != nil {
		t.Fatal(err)
	}
	if calls, err := r.First("b", 10); err != nil || len(calls) != 1 || len(calls[0].EventID) != 36 {
		t.Errorf("%+v, %v", calls, err)
	}
	if err := (Record{}).Add(u); err == nil || !(Record{}).Empty() {
		t.Error("without a folder it was kept")
	}
}

// Two URLs differ, but not by their passwords.
func TestAFabricIsFoundByItsURL(t *testing.T) {
	f := Folder(t.TempDir())
	if err := f.reach("nats://u:old@here:1", "f"); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{"nats://u:new@here:1": "f", "nats://u:old@there:1": "", "": ""} {
		if got, err := f.Reached(url); err != nil || got != want {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
}

func FuzzFilesOfThePolicy(f *testing.F) {
	f.Add([]byte("QUJD QUJD\n{}"), []byte("QUJD\n"), []byte("f\n"))
	f.Add([]byte(""), []byte(strings.Repeat("A", 43)+"=\n"), []byte("=\n"))
	f.Fuzz(func(t *testing.T, policy, key, reached []byte) {
		folder := Folder(t.TempDir())
		dir, err := folder.of("f")
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{filepath.Join(dir, policyFile): policy, filepath.Join(dir, keyFile): key,
			folder.reachedFile(""): reached, filepath.Join(dir, unjudgedFile): policy} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := folder.Policy("f"); p != nil && (err != nil || p.Fabric != "f") {
			t.Errorf("%+v, %v", p, err)
		}
		if fabric, err := folder.Reached(""); err == nil && fabric == "" {
			t.Error("a fabric without a name was reached")
		}
		calls, _ := folder.Record("f", "").First("a", 10)
		for i := range calls {
			if !sound(&calls[i]) {
				t.Errorf("%+v", calls[i])
			}
		}
	})
}
