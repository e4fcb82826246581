package field

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is what a member takes of the machine.
type Usage struct {
	// RSS is its memory in bytes, Peak the most that it ever was of this process.
	RSS  uint64 `json:"rss"`
	Peak uint64 `json:"peak"`
	// CPU is the seconds of all its processes, the killed ones included.
	CPU float64 `json:"cpu"`
	// Files is how many files and connections it has open.
	Files int `json:"files"`
	// Threads is how many threads of the system it has.
	Threads int `json:"threads"`
}

// Usage is what each member takes now. It is empty where the system has no /proc.
func (f *Field) Usage() map[string]Usage {
	all := map[string]Usage{}
	for _, v := range f.victims() {
		u, ok := UsageOf(v.Pid())
		if !ok {
			continue
		}
		f.mu.Lock()
		u.CPU += f.spent[v.Name]
		f.mu.Unlock()
		all[v.Name] = u
	}
	return all
}

// spend adds what a process took that is about to be killed.
func (f *Field) spend(member string, pid int) {
	u, _ := UsageOf(pid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spent[member] += u.CPU
}

// UsageOf is what a process takes; false: there is none, or nobody knows.
func UsageOf(pid int) (Usage, bool) {
	if pid == 0 {
		return Usage{}, false
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return Usage{}, false
	}
	u := Usage{CPU: cpu(pid).Seconds()}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			u.RSS = kilobytes(value)
		case "VmHWM":
			u.Peak = kilobytes(value)
		case "Threads":
			u.Threads = int(number(value))
		}
	}
	files, err := os.ReadDir(dir + "fd")
	if err == nil {
		u.Files = len(files)
	}
	return u, u.RSS > 0 // one that has ended and was not waited for has none
}

func kilobytes(s string) uint64 { return number(strings.TrimSuffix(strings.TrimSpace(s), " kB")) << 10 }

// number is 0 for what is none.
func number(s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
