package report

import (
	"context"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"
)

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
