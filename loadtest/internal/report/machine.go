package report

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Facts are what figures depend on besides the code under test.
type Facts struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// CPU is the processor's model; absent: unknown.
	CPU  string `json:"cpu,omitzero"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// Revision is the revision of the code, with a plus if it was changed since; absent:
	// unknown.
	Revision string `json:"revision,omitzero"`
	// Load is the load average of the last minute when the facts were recorded; absent:
	// unknown. A load near CPUs means that other programs used the machine, which makes the
	// figures of several processes worse.
	Load float64 `json:"load,omitzero"`
	// Modules are the versions of the modules that handle a call.
	Modules map[string]string `json:"modules,omitzero"`
}

func (f Facts) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s/%s, %d CPUs %s, load before %.1f, %s", f.OS, f.Arch, f.CPUs, f.CPU, f.Load, f.Go)
	for _, m := range modules() {
		if v := f.Modules[m]; v != "" {
			fmt.Fprintf(&s, ", %s %s", strings.TrimPrefix(m, "github.com/"), v)
		}
	}
	if f.Revision != "" {
		fmt.Fprintf(&s, ", code %s", f.Revision)
	}
	return s.String()
}

// modules lists the modules whose version matters.
func modules() []string {
	return []string{"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "github.com/go-json-experiment/json"}
}

// Here returns the facts of this machine and this program.
func Here() Facts {
	f := Facts{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), CPU: model(), Load: loadAverage(),
		Go: runtime.Version(), Revision: revision(), Modules: map[string]string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return f
	}
	versions := map[string]string{}
	for _, m := range info.Deps {
		versions[m.Path] = m.Version
	}
	for _, name := range modules() {
		if v := versions[name]; v != "" {
			f.Modules[name] = v
		}
	}
	return f
}

// model returns the processor's name on Linux.
func model() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage returns the load average on Linux.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}

// short is the number of characters of a revision in a report.
const short = 12

// revision returns the revision that the program was built from. If the build has no
// revision, as with "go run", it returns that of the current folder if the folder is the
// module's own.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	told := map[string]string{}
	for _, s := range info.Settings {
		told[s.Key] = s.Value
	}
	if r := told["vcs.revision"]; r != "" {
		return marked(r, told["vcs.modified"] == "true")
	}
	if module, err := os.ReadFile("go.mod"); err != nil || !strings.HasPrefix(string(module), "module "+info.Main.Path+"\n") {
		return ""
	}
	r := git("rev-parse", "HEAD")
	return marked(r, r != "" && git("status", "--porcelain", "--", "*.go", "go.mod") != "")
}

func marked(revision string, changed bool) string {
	revision = revision[:min(short, len(revision))]
	if changed {
		revision += "+"
	}
	return revision
}

// git returns the output of a git command; empty: git is not installed, or the folder is
// not a git repository.
func git(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
