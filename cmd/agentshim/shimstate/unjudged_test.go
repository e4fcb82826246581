package shimstate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// The log is bounded: it drops the oldest calls and counts them.
func TestTheRecordIsBounded(t *testing.T) {
	r := Folder(t.TempDir()).UnjudgedLog("f", "nats://there")
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
		calls, err := r.Oldest("a", 100)
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
		if err := r.Remove(calls); err != nil {
			t.Fatal(err)
		}
	}
	if first := most - lost; next != most || lost == 0 || first < maxUnjudged/2/1200 {
		t.Errorf("%d of %d are lost, and %d came, up to %d", lost, most, first, next)
	}
}

// The log replaces an id that is not valid, so that the call is not lost.
func TestACallWithoutAnIDGetsOne(t *testing.T) {
	r := Folder(t.TempDir()).UnjudgedLog("", "nats://there")
	u := unjudged(1)
	u.EventID = "mine"
	if err := r.Add(u); err != nil {
		t.Fatal(err)
	}
	if calls, err := r.Oldest("b", 10); err != nil || len(calls) != 1 || len(calls[0].EventID) != 36 {
		t.Errorf("%+v, %v", calls, err)
	}
	if err := (UnjudgedLog{}).Add(u); err == nil || !(UnjudgedLog{}).Empty() {
		t.Error("without a folder it was kept")
	}
}

// Two URLs differ, but not by their passwords.
func TestAFabricIsFoundByItsURL(t *testing.T) {
	f := Folder(t.TempDir())
	if err := f.addReached("nats://u:old@here:1", "f"); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string][]string{"nats://u:new@here:1": {"f"}, "nats://u:old@there:1": nil, "": nil} {
		if got, err := f.Fabrics(url); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
}

// Forget of one URL keeps the fabrics of other URLs, and all handovers and unjudged calls.
func TestAPlaceIsForgottenAlone(t *testing.T) {
	f := Folder(t.TempDir())
	for _, r := range [][2]string{{"nats://a", "f1"}, {"nats://a", "f2"}, {"nats://b", "f2"}, {"nats://b", "f2"}, {Unnamed, "f1"}, {Unnamed, "f3"}} {
		if err := f.addReached(r[0], r[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, fabric := range []string{"f1", "f2", "f3"} {
		for _, name := range []string{"policy", "key", "a" + suffix} {
			path := filepath.Join(string(f), folder, fabric, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.UnjudgedLog("", "nats://a").Add(schema.Unjudged{Agent: "a", Event: schema.PreToolUse, Decision: schema.Deny}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Forget("nats://a"); err != nil || !slices.Equal(got, []string{"f1", "f2"}) {
		t.Errorf("%v, %v", got, err)
	}
	for url, want := range map[string][]string{"nats://a": nil, "nats://b": {"f2"}, Unnamed: {"f3"}} {
		if got, err := f.Fabrics(url); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", url, got, err, want)
		}
	}
	for path, want := range map[string]bool{"f1/policy": false, "f1/key": false, "f1/a.json": true, "f2/policy": true, "f2/key": true, "f3/key": true} {
		if _, err := os.Stat(filepath.Join(string(f), folder, path)); (err == nil) != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
	if f.UnjudgedLog("", "nats://a").Empty() {
		t.Error("what is to be handed in is gone")
	}
	if got, err := f.Forget(""); err != nil || !slices.Equal(got, []string{"f2", "f3"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := f.Forget(""); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzFilesOfThePolicy(f *testing.F) {
	f.Add([]byte("QUJD QUJD\n{}"), []byte("QUJD\n"), []byte("f\n"))
	f.Add([]byte(""), []byte(strings.Repeat("A", 43)+"=\n"), []byte("=\n"))
	f.Fuzz(func(t *testing.T, policy, key, reached []byte) {
		folder := Folder(t.TempDir())
		dir, err := folder.fabric("f")
		if err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{policyFile(dir).path: policy, keyFile(dir).path: key,
			folder.reachedFile("").path: reached, filepath.Join(dir, unjudgedFile): policy} {
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
		if all, err := folder.Fabrics(""); err == nil && (len(all) == 0 || slices.Contains(all, "")) {
			t.Errorf("a fabric without a name was reached: %q", all)
		}
		calls, _ := folder.UnjudgedLog("f", "").Oldest("a", 10)
		for i := range calls {
			if !isValid(&calls[i]) {
				t.Errorf("%+v", calls[i])
			}
		}
	})
}
