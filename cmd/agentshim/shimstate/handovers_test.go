package shimstate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/client"
)

// The variables that make a process of this test a writer.
const (
	dirVar   = "KEPT_TEST_DIR"
	firstVar = "KEPT_TEST_FIRST"
	each     = 20
)

func TestMain(m *testing.M) {
	dir := os.Getenv(dirVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	first, err := strconv.Atoi(os.Getenv(firstVar))
	for n := first; err == nil && n < first+each; n++ {
		h := client.Handover{Fabric: "f", Agent: "a", Events: []string{event(n)}, Sequences: []uint64{uint64(n)}}
		if err = addHandover(dir, h, nil); err == nil && n%2 == 1 {
			err = addHandover(dir, client.Handover{Fabric: "f", Agent: "a"}, []string{event(n)})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// addHandover calls [Folder.AddHandover] and retries: on a busy machine the lock may time
// out.
func addHandover(dir string, h client.Handover, acknowledged []string) (err error) {
	for range 100 {
		if err = Folder(dir).AddHandover(h, acknowledged); err == nil {
			break
		}
	}
	return err
}

// event is the n-th event's id.
func event(n int) string { return fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", n) }

// TestProcessesSideBySideLoseNothingOfEachOther kills processes with kill -9 at any moment,
// with any number of them at a time. Nothing is lost that a process has reported as stored.
func TestProcessesSideBySideLoseNothingOfEachOther(t *testing.T) {
	dir := t.TempDir()
	const n = 8
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c := exec.CommandContext(ctx, os.Args[0])
			c.Env = append(os.Environ(), dirVar+"="+dir, firstVar+"="+strconv.Itoa(i*each))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	got, err := Folder(dir).Handovers("a")
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	slices.Sort(got[0].Events)
	slices.Sort(got[0].Sequences)
	want := client.Handover{Fabric: "f", Agent: "a"}
	for i := range n * each {
		want.Sequences = append(want.Sequences, uint64(i))
		if i%2 == 0 {
			want.Events = append(want.Events, event(i))
		}
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

func TestAWriterThatHangsHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	h := client.Handover{Fabric: "f", Agent: "a", Sequences: []uint64{1}}
	if err := Folder(dir).AddHandover(h, nil); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(filepath.Join(dir, folder, "f", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	h.Sequences = []uint64{2}
	if err := Folder(dir).AddHandover(h, nil); err == nil || !strings.Contains(err.Error(), "another process has held") {
		t.Errorf("%v", err)
	}
	if got, err := Folder(dir).Handovers("a"); err != nil || len(got) != 1 {
		t.Errorf("readers wait for writers: %v, %v", got, err)
	}
	unlock()
	if err := addHandover(dir, h, nil); err != nil {
		t.Error(err)
	}
}

func TestEachAgentOfEachFabricHasItsOwn(t *testing.T) {
	dir := Folder(t.TempDir())
	if got, err := dir.Handovers("a"); got != nil || err != nil {
		t.Errorf("in an empty folder: %v, %v", got, err)
	}
	agents := []string{"a", "../a", "A", ".", "données/1", strings.Repeat("x", 128)}
	for i, agent := range agents {
		for j, fabric := range []string{"f", "../f"} {
			if err := dir.AddHandover(client.Handover{Fabric: fabric, Agent: agent, Sequences: []uint64{uint64(10*i + j + 1)}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, agent := range agents {
		got, err := dir.Handovers(agent)
		if err != nil || len(got) != 2 || got[0].Sequences[0]+got[1].Sequences[0] != uint64(20*i+3) {
			t.Errorf("%s: %+v, %v", agent, got, err)
		}
	}
	if _, err := dir.Handovers(""); err == nil {
		t.Error("nobody has a file")
	}
}

func TestAnEmptyFolderKeepsNothing(t *testing.T) {
	if err := Folder("").AddHandover(client.Handover{Fabric: "f", Agent: "a", Sequences: []uint64{1}}, nil); err != nil {
		t.Error(err)
	}
	if got, err := Folder("").Handovers("a"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAFileIsBounded(t *testing.T) {
	dir := Folder(t.TempDir())
	h := client.Handover{Fabric: "f", Agent: "a"}
	for n := range maxSequences + 10 {
		h.Sequences = append(h.Sequences, uint64(n))
		if n < maxEvents+10 {
			h.Events = append(h.Events, event(n))
		}
	}
	if err := dir.AddHandover(h, nil); err != nil {
		t.Fatal(err)
	}
	got, err := dir.Handovers("a")
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	want := client.Handover{Fabric: "f", Agent: "a", Events: h.Events[10:], Sequences: h.Sequences[10:]}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

func TestLongAfterTheLeaseOnlySequencesCount(t *testing.T) {
	dir := Folder(t.TempDir())
	h := client.Handover{Fabric: "f", Agent: "a", Events: []string{event(1)}, Sequences: []uint64{1}}
	if err := dir.AddHandover(h, nil); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-ackTime - time.Minute)
	if err := os.Chtimes(filepath.Join(string(dir), folder, "f", "a"+suffix), long, long); err != nil {
		t.Fatal(err)
	}
	h.Events = nil
	if got, err := dir.Handovers("a"); err != nil || !cmp.Equal(got, []client.Handover{h}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsOldIsTakenAway(t *testing.T) {
	dir := Folder(t.TempDir())
	keep := func(agent string) string {
		t.Helper()
		if err := dir.AddHandover(client.Handover{Fabric: "f", Agent: agent, Sequences: []uint64{1}}, nil); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(string(dir), folder, "f", agent+suffix)
	}
	gone, young := keep("gone"), keep("young")
	dead := filepath.Join(filepath.Dir(gone), ".new-dead")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-handoverExpiry - time.Hour)
	for _, path := range []string{gone, dead} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	keep("other")
	for path, there := range map[string]bool{gone: false, dead: false, young: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
}

// A machine that has seen many fabrics still reads the handovers of the newest.
func TestOfManyFabricsTheNewestCount(t *testing.T) {
	dir := Folder(t.TempDir())
	began := time.Now().Add(-time.Hour)
	for n := range maxFabrics + 1 {
		h := client.Handover{Fabric: fmt.Sprintf("f%03d", n), Agent: "a", Sequences: []uint64{uint64(n + 1)}}
		if err := dir.AddHandover(h, nil); err != nil {
			t.Fatal(err)
		}
		at := began.Add(time.Duration(n) * time.Second)
		if err := os.Chtimes(filepath.Join(string(dir), folder, h.Fabric), at, at); err != nil {
			t.Fatal(err)
		}
	}
	got, err := dir.Handovers("a")
	newest := func(h client.Handover) bool { return h.Sequences[0] == maxFabrics+1 }
	if err != nil || len(got) != maxFabrics || !slices.ContainsFunc(got, newest) {
		t.Errorf("%d of %d fabrics, and the newest one: %v, %v", len(got), maxFabrics+1, slices.ContainsFunc(got, newest), err)
	}
}

func TestAFileThatIsOfNoShimCountsAsEmpty(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":           `{`,
		"a list":            `[]`,
		"an event's id":     `{"events":["x"]}`,
		"an id with braces": `{"events":["{0199f3c1-6d1f-7e8a-9b2c-000000000001}"]}`,
		"too many bytes":    `{"x":"` + strings.Repeat("x", maxHandoverFile) + `"}`,
		"too many events":   `{"sequences":[` + strings.Repeat("1,", maxSequences) + `1]}`,
		"a negative number": `{"sequences":[-1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := Folder(t.TempDir())
			h := client.Handover{Fabric: "f", Agent: "a", Sequences: []uint64{1}}
			if err := dir.AddHandover(h, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(string(dir), folder, "f", "a"+suffix), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := dir.Handovers("a"); err == nil || got != nil {
				t.Errorf("%+v", got)
			}
			if err := dir.AddHandover(h, nil); err != nil {
				t.Fatal(err)
			}
			if got, err := dir.Handovers("a"); err != nil || !cmp.Equal(got, []client.Handover{h}) {
				t.Errorf("after it was written anew: %+v, %v", got, err)
			}
		})
	}
}

// The decoder's result can be encoded, decodes to the same value, and is within the limits.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"events":["0199f3c1-6d1f-7e8a-9b2c-000000000001"],"sequences":[1,2]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeHandovers(data)
		if err != nil {
			if len(r.Events)+len(r.Sequences) != 0 {
				t.Fatalf("an error and %+v", r)
			}
			return
		}
		file := handoverFile(t.TempDir(), "x")
		if err := file.store(r); err != nil {
			t.Fatal(err)
		}
		again, _, err := file.load()
		if err != nil || !slices.Equal(again.Events, r.Events) || !slices.Equal(again.Sequences, r.Sequences) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}
