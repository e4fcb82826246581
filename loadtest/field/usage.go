package field

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is the usage of a member.
type Usage struct {
	// RSS is its memory in bytes. Peak is the highest RSS of this process.
	RSS  uint64 `json:"rss"`
	Peak uint64 `json:"peak"`
	// CPU is the CPU time of all its processes in seconds, including killed ones.
	CPU float64 `json:"cpu"`
	// Files is the number of its open files and connections.
	Files int `json:"files"`
	// Threads is the number of its threads.
	Threads int `json:"threads"`
}

// Usage returns the current usage of each member. It is empty on systems without /proc.
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

// spend adds the usage of a process that is about to be killed.
func (f *Field) spend(member string, pid int) {
	u, _ := UsageOf(pid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spent[member] += u.CPU
}

// UsageOf returns the usage of a process, and false if the process does not exist or the
// system has no /proc.
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
	return u, u.RSS > 0 // a zombie has no memory
}

func kilobytes(s string) uint64 { return number(strings.TrimSuffix(strings.TrimSpace(s), " kB")) << 10 }

// number parses a number and returns 0 if it is not valid.
func number(s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
