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

// A Settled is what a role holds once its garbage was collected.
type Settled struct {
	// Heap is what is in use of it, in bytes.
	Heap uint64 `json:"heap"`
	// Resident is how much of the machine's memory the process takes, in bytes; 0
	// where the system does not say.
	Resident float64 `json:"resident,omitzero"`
	// Goroutines is how many there are.
	Goroutines int `json:"goroutines"`
	// Before and After are what it had used of the machine until then, and until
	// its garbage was collected: what lies between them is nobody's call.
	Before measure.Used `json:"before"`
	After  measure.Used `json:"after"`
}

// KeepPages is what those have in their environment whose time is measured, and not their
// memory. The collections of [Settle] come when a heap has hardly grown, which none does by
// itself; Go would give most of its pages back to the system then, and each window would
// pay for getting them again: on a virtual machine up to a third of a call.
const KeepPages = "GODEBUG=madvdontneed=0"

// Settle is what roles do that are asked nothing else: it collects the garbage of what was done before, so that the next
// measurement does not pay for it.
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

// resident is how much of the machine's memory a process takes, in bytes; 0
// where the system does not say.
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
