package roles

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/hookfabric/hookfabric/loadtest/internal/account"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
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
	// Purposes are what the time since the last request was for, if that one asked for it.
	Purposes map[account.Purpose]schema.Duration `json:"purposes,omitzero"`
}

// A SettleRequest is a request to [Settle].
type SettleRequest struct {
	// Account has the next answer say what the time until then is for. It takes a CPU profile.
	Account bool `json:"account,omitzero"`
}

// profiling holds the CPU profile that runs; nil: none. There can be one in a process.
var profiling *bytes.Buffer

// KeepPages is set in the environment of roles whose time, not memory, is measured.
// [Settle] collects garbage although the heap has hardly grown. Go would then return most
// pages to the system, and each window would pay to get them again: on a virtual machine up
// to a third of a call.
const KeepPages = "GODEBUG=madvdontneed=0"

// Settle collects the garbage of earlier work, so that the next measurement does not pay
// for it. It answers the requests of roles that have no others.
func Settle(_ context.Context, line []byte) (_ any, err error) {
	s := Settled{Before: load.SoFar()}
	if profiling != nil {
		pprof.StopCPUProfile()
		s.Purposes, err = account.Of(profiling.Bytes(), "runtime.GC")
		profiling = nil
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	usage, _ := proc.UsageOf(os.Getpid())
	var q SettleRequest
	if err == nil {
		err = schema.Unmarshal(line, &q)
	}
	if err == nil && q.Account {
		profiling = new(bytes.Buffer)
		err = pprof.StartCPUProfile(profiling)
	}
	s.Heap, s.Resident, s.Goroutines, s.After = m.HeapAlloc, usage.RSS, runtime.NumGoroutine(), load.SoFar()
	return s, err
}
