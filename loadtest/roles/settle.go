package roles

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/measure"
)

// A Settled is what a role holds after a garbage collection.
type Settled struct {
	// Heap is the size of the heap in use, in bytes.
	Heap uint64 `json:"heap"`
	// Resident is the resident memory of the process, in bytes; 0: unknown.
	Resident float64 `json:"resident,omitzero"`
	// Goroutines is the number of goroutines.
	Goroutines int `json:"goroutines"`
	// Before and After are the process's usage before and after the garbage collection. The
	// difference does not belong to any call.
	Before measure.Used `json:"before"`
	After  measure.Used `json:"after"`
}

// KeepPages is set in the environment of roles whose time, not memory, is measured.
// [Settle] collects garbage although the heap has hardly grown. Go would then return most
// pages to the system, and each window would pay to get them again: on a virtual machine up
// to a third of a call.
const KeepPages = "GODEBUG=madvdontneed=0"

// Settle collects the garbage of earlier work, so that the next measurement does not pay
// for it. It answers the requests of roles that have no others.
func Settle(context.Context, []byte) (any, error) {
	before := measure.SoFar()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Settled{
		Heap: m.HeapAlloc, Resident: resident(os.Getpid()), Goroutines: runtime.NumGoroutine(),
		Before: before, After: measure.SoFar(),
	}, nil
}

// resident returns the resident memory of a process, in bytes; 0: unknown.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kib * 1024
		}
	}
	return 0
}
