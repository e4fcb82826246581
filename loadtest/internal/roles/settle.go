package roles

import (
	"context"
	"os"
	"runtime"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
)

// A Settled is what a role holds after a garbage collection.
type Settled struct {
	// Heap is the size of the heap in use, in bytes.
	Heap uint64 `json:"heap"`
	// Resident is the resident memory of the process, in bytes; 0: unknown.
	Resident uint64 `json:"resident,omitzero"`
	// Goroutines is the number of goroutines.
	Goroutines int `json:"goroutines"`
	// Before and After are the process's usage before and after the garbage collection. The
	// difference does not belong to any call.
	Before load.Used `json:"before"`
	After  load.Used `json:"after"`
}

// KeepPages is set in the environment of roles whose time, not memory, is measured.
// [Settle] collects garbage although the heap has hardly grown. Go would then return most
// pages to the system, and each window would pay to get them again: on a virtual machine up
// to a third of a call.
const KeepPages = "GODEBUG=madvdontneed=0"

// Settle collects the garbage of earlier work, so that the next measurement does not pay
// for it. It answers the requests of roles that have no others.
func Settle(context.Context, []byte) (any, error) {
	s := Settled{Before: load.SoFar()}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	usage, _ := proc.UsageOf(os.Getpid())
	s.Heap, s.Resident, s.Goroutines, s.After = m.HeapAlloc, usage.RSS, runtime.NumGoroutine(), load.SoFar()
	return s, nil
}
