package measure

import (
	"runtime"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Used is what a process used of the machine. Unlike a time on the clock it says
// nearly the same on a machine that others use, too.
type Used struct {
	// CPU is the time of its processors, in the kernel too, with that of the
	// programs that it started and waited for.
	CPU schema.Duration `json:"cpu"`
	// Allocations and Bytes are what was put on the heap.
	Allocations uint64 `json:"allocations"`
	Bytes       uint64 `json:"bytes"`
	// Waits is how often one of its threads gave up its processor, to wait.
	Waits int64 `json:"waits"`
}

// SoFar is what this process has used since it began.
func SoFar() Used {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Used{Allocations: m.Mallocs, Bytes: m.TotalAlloc}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) != nil {
			continue // it cannot fail with these
		}
		u.CPU += schema.Duration(spent(r.Utime) + spent(r.Stime))
		u.Waits += int64(r.Nvcsw) //nolint:unconvert // it has another type on other systems
	}
	return u
}

func spent(t syscall.Timeval) time.Duration { return time.Duration(t.Nano()) }

// Since is what was used since then.
func (u Used) Since(then Used) Used {
	return Used{
		CPU: u.CPU - then.CPU, Allocations: u.Allocations - then.Allocations,
		Bytes: u.Bytes - then.Bytes, Waits: u.Waits - then.Waits,
	}
}

// Plus is what two processes used together.
func (u Used) Plus(other Used) Used {
	return Used{
		CPU: u.CPU + other.CPU, Allocations: u.Allocations + other.Allocations,
		Bytes: u.Bytes + other.Bytes, Waits: u.Waits + other.Waits,
	}
}
