package load

import (
	"runtime"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Used is what a process used of the machine. Unlike wall-clock time, it hardly depends on
// other load on the machine.
type Used struct {
	// CPU is the processor time, including the kernel and child processes that were waited
	// for.
	CPU schema.Duration `json:"cpu"`
	// Allocations and Bytes are the number and the size of heap allocations.
	Allocations uint64 `json:"allocations"`
	Bytes       uint64 `json:"bytes"`
	// Waits is how often one of its threads gave up its processor, to wait.
	Waits int64 `json:"waits"`
}

// SoFar returns what this process has used since it began.
func SoFar() Used {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Used{Allocations: m.Mallocs, Bytes: m.TotalAlloc}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) != nil {
			continue // these arguments cannot fail
		}
		u.CPU += schema.Duration(spent(r.Utime) + spent(r.Stime))
		u.Waits += int64(r.Nvcsw) //nolint:unconvert // it has another type on other systems
	}
	return u
}

func spent(t syscall.Timeval) time.Duration { return time.Duration(t.Nano()) }

// Since returns the use since then.
func (u Used) Since(then Used) Used {
	return Used{
		CPU: u.CPU - then.CPU, Allocations: u.Allocations - then.Allocations,
		Bytes: u.Bytes - then.Bytes, Waits: u.Waits - then.Waits,
	}
}

// Plus returns the sum for two processes.
func (u Used) Plus(other Used) Used {
	return Used{
		CPU: u.CPU + other.CPU, Allocations: u.Allocations + other.Allocations,
		Bytes: u.Bytes + other.Bytes, Waits: u.Waits + other.Waits,
	}
}
