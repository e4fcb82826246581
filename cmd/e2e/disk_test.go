package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// TestFullDisk fills the disk under a broker: calls are judged as before, and
// one that is started there says what is wrong.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t)
	data, dir := filepath.Join(disk, "data"), t.TempDir()
	config := write(t, dir, "hooks.yaml", "presets: []\nhooks:\n  PreToolUse:\n    - {type: builtin, handler: deny, fail_closed: true}\n")
	b := startBroker(t, "--config", config, "--data", data)
	c := dial(t, b.url)
	stuff := stuffed(t, disk)
	for range 50 {
		if v, err := ask(t.Context(), c, "Bash"); err != nil || v.Decision != schema.Deny {
			t.Fatalf("with a full disk a call got %+v, %v", v, err)
		}
	}
	// Larger than the free part of the current block.
	if err := connect(t, b.url).Publish("$KV.hook_config.filler", make([]byte, 1<<16)); err != nil {
		t.Fatal(err)
	}
	troubled(t, b, true)
	began, late := time.Now(), start(t, "broker", "apply", "--nats", b.url, write(t, dir, "late.yaml", "hooks: {}\n"))
	if code, err := late.wait(); err != nil || code != 1 || !strings.Contains(late.said.String(), "is full (0 MiB left)") || time.Since(began) > patience/2 {
		t.Errorf("on a full disk apply ended after %v with %d, %v:\n%s", time.Since(began), code, err, late.said)
	}
	if v, err := ask(t.Context(), c, "Bash"); err != nil || v.Decision != schema.Deny {
		t.Errorf("in trouble a call got %+v, %v", v, err)
	}
	if err := os.Remove(stuff); err != nil {
		t.Fatal(err)
	}
	troubled(t, b, false)
	other, said := write(t, dir, "other.yaml", "hooks: {}\n"), ""
	if err := eventually("apply works again", func() bool {
		applied := start(t, "broker", "apply", "--nats", b.url, other)
		code, err := applied.wait()
		said = applied.said.String()
		return err == nil && code == 0 && strings.Contains(said, "version 2 is active")
	}); err != nil {
		t.Errorf("with room again: %v:\n%s", err, said)
	}
	stuff = stuffed(t, disk)
	b.must(t, syscall.SIGTERM)
	if code, err := b.wait(); err != nil || code != 0 {
		t.Errorf("on a full disk the broker ended with %d, %v:\n%s", code, err, b.said)
	}
	refused := start(t, "broker", append([]string{"--config", config, "--data", data}, anyPort...)...)
	if code, err := refused.wait(); err != nil || code != 1 || !strings.Contains(refused.said.String(), "MiB left; free at least") {
		t.Errorf("started on a full disk: %d, %v:\n%s", code, err, refused.said)
	}
	if err := os.Remove(stuff); err != nil {
		t.Fatal(err)
	}
	again := startBroker(t, "--data", data)
	again.mustSay(t, 0, `hooks +0 \(configuration version 2\)`)
	again.must(t, syscall.SIGTERM)
	if code, err := again.wait(); err != nil || code != 0 {
		t.Errorf("with room again the broker ended with %d, %v:\n%s", code, err, again.said)
	}
}

// TestItemsOnAFullDisk fills the disk of a broker that stores items for an agent. The broker
// refuses items while the disk is full, and accepts them again when it has space.
func TestItemsOnAFullDisk(t *testing.T) {
	disk := smallDisk(t)
	b := startBroker(t, "--data", filepath.Join(disk, "data"))
	inject := func(key, text string) (int, string) {
		p := start(t, "broker", "inject", "--nats", b.url, "--agent", "a", "--key", key, text)
		code, err := p.wait()
		if err != nil {
			t.Fatal(err)
		}
		return code, p.said.String()
	}
	if code, said := inject("first", "first"); code != 0 {
		t.Fatal(said)
	}
	stuff := stuffed(t, disk)
	refused := ""
	for i := 0; refused == "" && i < 100; i++ {
		if code, said := inject(fmt.Sprint("more", i), strings.Repeat("x", 100_000)); code != 0 {
			refused = said
		}
	}
	if !strings.Contains(refused, "the disk of the data directory "+filepath.Join(disk, "data")+" is full (0 MiB left), so nothing can be stored; free at least 64 MiB") {
		t.Errorf("on a full disk: %q", refused)
	}
	troubled(t, b, true)
	long := exec.Command("broker", "inject", "--nats", b.url, "--agent", "a", "-")
	long.Stdin = strings.NewReader(strings.Repeat("x", 3<<20))
	began := time.Now()
	if said, err := long.CombinedOutput(); err == nil || !strings.Contains(string(said), "is full (0 MiB left)") || time.Since(began) > patience/2 {
		t.Errorf("on a full disk a long text ended after %v with %v:\n%s", time.Since(began), err, said)
	}
	if err := os.Remove(stuff); err != nil {
		t.Fatal(err)
	}
	troubled(t, b, false)
	if code, said := inject("last", "last"); code != 0 {
		t.Errorf("with room again: %s", said)
	}
	v, err := dial(t, b.url).Ask(t.Context(), &schema.Event{HookType: schema.PostToolUse, AgentID: "a", ToolName: "Read"})
	if err != nil || len(v.Injections) != 1 || !strings.Contains(v.Injections[0].Content, "first") || !strings.Contains(v.Injections[0].Content, "last") {
		t.Errorf("the agent got %+v, %v", v, err)
	}
}

// smallDisk is a file system that is soon full.
func smallDisk(t *testing.T) string {
	t.Helper()
	if !long() || os.Geteuid() != 0 {
		t.Skip("A FULL DISK IS NOT TESTED: that takes root, for a small file system, and HOOKFABRIC_LONG=1")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256m"); err != nil {
		t.Skipf("A FULL DISK IS NOT TESTED: no small file system could be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// troubled waits until a broker says that it is in trouble, or out of it.
func troubled(t testing.TB, b *brokerProcess, is bool) {
	t.Helper()
	nc := connect(t, b.url)
	var last string
	err := eventually(fmt.Sprintf("in trouble is %v", is), func() bool {
		st, err := status(nc)
		code, body, getErr := fetch(b.http + "/readyz")
		last = fmt.Sprintf("status: %q, %v; /readyz: %d %s, %v", st.Trouble, err, code, body, getErr)
		return err == nil && getErr == nil && (st.Trouble != "") == is && (code == http.StatusServiceUnavailable) == is &&
			strings.Contains(body, "nothing can be stored") == is
	})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, last, b.said)
	}
}

// stuffed fills a file system with one file.
func stuffed(t testing.TB, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "stuff"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return f.Name()
}
