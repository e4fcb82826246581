package aggregator_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// fullDisk is why a store takes no writes.
const fullDisk = "the disk of /data is full"

// disk may be full.
type disk struct{ full atomic.Bool }

func (d *disk) wrong() error {
	if d.full.Load() {
		return errors.New(fullDisk)
	}
	return nil
}

// TestARequestNamesTheFullDisk checks that the error names the full disk if it left a request
// without an answer.
func TestARequestNamesTheFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, disk := newMemory(), new(disk)
		f := startWith(t, aggregator.Options{Memory: m.all(), Unstorable: disk.wrong}, library{})
		m.slow = true
		began := time.Now()
		for _, full := range []bool{false, true} {
			disk.full.Store(full)
			_, failed := f.request("inject.a", `{"content":"x"}`)
			if failed == nil || failed.Code != schema.CodeUnavailable || strings.HasPrefix(failed.Message, fullDisk) != full {
				t.Errorf("the disk is full: %v; %v", full, failed)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("two requests took %v", took)
		}
		m.mu.Lock()
		m.slow = false
		m.mu.Unlock()
		if _, failed := f.request("inject._", `{"content":"x"}`); failed == nil || strings.Contains(failed.Message, fullDisk) {
			t.Errorf("a request that names no agent: %v", failed)
		}
	})
}

// TestAChangeEndsOnAFullDisk checks that a change of the configuration ends when the store accepts
// no writes, and that the error names the reason. The change waits for a broker that never loads
// the version.
func TestAChangeEndsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configs, err := state.OpenConfigs(t.Context(), bustest.JetStream(t, bustest.Start(t)), state.ConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		disk := new(disk)
		f := startWith(t, aggregator.Options{Node: "b1", Configs: configs, Unstorable: disk.wrong}, library{})
		watching, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- configs.Watch(watching, func(state.Update) {}) }()
		defer func() { stop(); <-ended }()
		lease, err := configs.Lease(state.Node{ID: "b2"})
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Close(t.Context())
		synctest.Wait()
		for _, full := range []bool{false, true} {
			disk.full.Store(full)
			began := time.Now()
			answer, failed := f.request("config._", `{"action":"apply","file":"hooks.yaml","source":"hooks: {}"}`)
			switch took := time.Since(began); {
			case !full && (failed != nil || !strings.Contains(answer, "did not report in time") || took < 20*time.Second):
				t.Errorf("with room, after %v: %s, %v", took, answer, failed)
			case full && (failed == nil || failed.Code != schema.CodeUnavailable || !strings.HasPrefix(failed.Message, fullDisk) || took > 3*time.Second):
				t.Errorf("on a full disk, after %v: %s, %v", took, answer, failed)
			}
		}
	})
}
