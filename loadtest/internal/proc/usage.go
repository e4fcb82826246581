package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is what a process uses of the machine.
type Usage struct {
	// RSS is its memory in bytes. Peak is the highest RSS of this process.
	RSS  uint64 `json:"rss"`
	Peak uint64 `json:"peak"`
	// CPU is its CPU time in seconds.
	CPU float64 `json:"cpu"`
	// Files is the number of its open files and connections.
	Files int `json:"files"`
	// Threads is the number of its threads.
	Threads int `json:"threads"`
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
	n, _ := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return n
}
