package hookfabric_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// modPath is the path that all import paths of the fabric begin with.
const modPath = "github.com/hookfabric/hookfabric"

// A room says what a package may import: packages of the fabric, and modules
// of others. The standard library is open to all but to the rooms that name
// what they must not touch.
type room struct {
	own     []string
	modules []string
	not     []string // packages of the standard library
}

// The modules of others by which the rooms differ.
const (
	modNATS   = "github.com/nats-io/nats.go"
	modServer = "github.com/nats-io/nats-server/v2"
	modNKeys  = "github.com/nats-io/nkeys"
	modJWT    = "github.com/nats-io/jwt/v2"
	modNUID   = "github.com/nats-io/nuid"
	modSync   = "golang.org/x/sync"
	modProm   = "github.com/prometheus/client_golang"
	modJSON   = "github.com/go-json-experiment/json"
	modUUID   = "github.com/google/uuid"
	modCmp    = "github.com/google/go-cmp"
	modCobra  = "github.com/spf13/cobra"
)

// rooms is the plan of the house, from the bottom to the top. A name that ends
// in /... is for all packages below it that have no line of their own.
func rooms() map[string]room {
	touching := []string{"net", "net/http", "os", "os/exec"}
	return map[string]room{
		// Words: pure data.
		"schema":                    {own: []string{"schema/trace"}, modules: []string{modJSON}, not: touching},
		"schema/trace":              {not: touching},
		"schema/match":              {modules: []string{"github.com/gobwas/glob"}, not: touching},
		"schema/guard":              {own: []string{"schema", "schema/match"}, not: touching},
		"schema/redact":             {own: []string{"schema", "schema/match"}, modules: []string{modJSON}, not: touching},
		"schema/hooksyaml":          {own: []string{"schema", "schema/match"}, modules: []string{"go.yaml.in/yaml/v4"}, not: touching},
		"schema/internal/schemagen": {own: []string{"schema"}, modules: []string{modJSON, "github.com/google/jsonschema-go"}},

		// Thinking: pure apart from waiting. The model must not know what it judges.
		"bus/dispatch":           {own: []string{"schema", "schema/guard", "schema/trace"}, modules: []string{modJSON}, not: touching},
		"bus/dispatch/cond":      {own: []string{"schema", "bus/dispatch"}, modules: []string{"cel.dev/cel-go", modJSON}, not: touching},
		"bus/internal/model":     {own: []string{"schema"}, modules: []string{modJSON}, not: touching},
		"bus/internal/model/gen": {own: []string{"schema", "bus/internal/model"}, modules: []string{modJSON, "pgregory.net/rapid"}},

		// Touching the world: the bus.
		"bus": {own: []string{"schema", "schema/trace", "bus/server/certs", "bus/chown"}, modules: []string{modNATS, modNKeys}},
		// Who may do what is data; only the realm below it keeps keys.
		"bus/server/access":    {own: []string{"schema", "bus"}, not: touching},
		"bus/server/realm":     {own: []string{"schema", "bus", "bus/server/access", "bus/chown"}, modules: []string{modNKeys, modJWT}},
		"bus/server/certs":     {own: []string{"bus/chown"}},
		"bus/chown":            {},
		"bus/proctree":         {},
		"bus/otlp":             {own: []string{"schema", "schema/trace", "bus/server/certs"}},
		"bus/server/certs/...": {own: []string{"bus/server/certs"}},
		"bus/client":           {own: []string{"schema", "schema/guard", "schema/trace", "bus", "bus/server/certs", "bus/snapshot"}, modules: []string{modNATS, modUUID, modJSON}},
		"bus/snapshot":         {modules: []string{"golang.org/x/sys"}},
		"bus/state":            {own: []string{"schema", "bus", "bus/state/kv"}, modules: []string{modNATS, modUUID, modNUID}},
		"bus/state/kv":         {own: []string{"schema", "bus"}, modules: []string{modNATS, modUUID, modNUID}},
		"bus/state/...":        {own: []string{"schema", "schema/match", "schema/redact", "bus", "bus/state/kv"}, modules: []string{modNATS, modUUID, modNUID, modJSON, modSync}},
		"bus/state/record":     {own: []string{"schema", "schema/match", "schema/redact", "bus", "bus/state/kv"}, modules: []string{modNATS, modJSON, "github.com/klauspost/compress"}},
		"bus/server":           {own: []string{"schema", "bus", "bus/server/access", "bus/server/realm", "bus/server/certs", "bus/server/internal/blocks", "bus/chown"}, modules: []string{modNATS, modServer, modJWT, modNKeys, "golang.org/x/crypto"}},
		"bus/bustest":          {own: []string{"bus", "bus/server", "bus/bustest/ports"}, modules: []string{modNATS, modServer}},
		"bus/bustest/ports":    {},
		"bus/bustest/contract": {own: []string{"schema"}, not: touching},
		"bus/bustest/netns":    {modules: []string{"golang.org/x/sys"}},
		// What the server keeps on disk, which only its source documents.
		"bus/server/internal/blocks": {modules: []string{"github.com/klauspost/compress", "github.com/minio/highwayhash"}},
		"bus/aggregator": {own: []string{"schema", "schema/guard", "schema/hooksyaml", "schema/trace", "bus", "bus/aggregator/observe", "bus/aggregator/ratelimit", "bus/dispatch", "bus/state", "bus/state/..."},
			modules: []string{modNATS, modNUID, modProm, modJSON, modSync, modUUID}},
		"bus/aggregator/ratelimit":         {not: touching},
		"bus/aggregator/internal/logevery": {not: touching},
		// It tells operators what happened, and decides nothing.
		"bus/aggregator/observe": {own: []string{"schema", "bus", "bus/aggregator/internal/logevery", "bus/dispatch", "bus/state/queue", "bus/state/record"}, modules: []string{modNATS, modProm}},
		"bus/agent/render":       {own: []string{"schema"}, modules: []string{modJSON}, not: touching},
		"bus/agent/loop":         {own: []string{"schema", "bus", "bus/client", "bus/agent/render", "bus/dispatch"}, modules: []string{modJSON, modUUID}},
		"bus/agent/llm":          {own: []string{"schema", "bus/agent/render", "bus/chown"}, modules: []string{modJSON}},
		"bus/client/clienttest":  {own: []string{"schema", "schema/guard", "bus"}, modules: []string{modNATS, modJSON}},
		"bus/agent/sdktest":      {own: []string{"schema"}},
		"bus/agent/python":       {},
		"bus/agent/typescript":   {},

		// Touching the world: workers and what they run.
		"workers":       {own: []string{"schema", "schema/trace", "bus", "bus/dispatch", "bus/state"}, modules: []string{modNATS, modProm, modUUID, modJSON, modSync}},
		"workers/child": {own: []string{"bus/proctree"}, modules: []string{"golang.org/x/sys"}},
		"workers/...":   {own: []string{"schema", "schema/trace", "bus/chown", "workers", "workers/child"}, modules: []string{modJSON, modCmp, "golang.org/x/sys"}},
		// What a runner's answers come to is judged as the fabric judges it.
		"workers/runnertest": {own: []string{"schema", "workers", "bus/dispatch"}, modules: []string{modJSON, modCmp, "golang.org/x/sys"}},
		// Paths are compared in one Unicode form, and seen as the process of a tool sees them.
		"builtin": {own: []string{"schema", "schema/redact", "schema/trace", "workers"}, modules: []string{modJSON, "golang.org/x/sys", "golang.org/x/text"}},

		// Programs: flags and wiring.
		"cmd/internal/pace":              {},
		"cmd/internal/program":           {own: []string{"schema", "bus/server/certs"}, modules: []string{modCobra, "github.com/spf13/pflag", "golang.org/x/sys"}},
		"cmd/internal/ops":               {own: []string{"schema/trace", "bus/server/certs", "bus/otlp", "cmd/internal/program"}, modules: []string{modProm}},
		"cmd/internal/runners":           {own: []string{"schema", "builtin", "workers", "workers/..."}},
		"cmd/agentshim/internal/dialect": {own: []string{"schema"}, modules: []string{modJSON}},
		"cmd/agentshim/internal/install": {own: []string{"schema", "bus/server/certs", "bus/chown", "cmd/agentshim/internal/install/...", "cmd/agentshim/internal/probe"},
			modules: []string{modJSON, "github.com/pelletier/go-toml/v2", "github.com/rogpeppe/go-internal/diff", "golang.org/x/sys"}}, // to exchange two files in one moment
		"cmd/agentshim/internal/install/edit": {own: []string{"schema"}, modules: []string{modJSON}, not: touching},
		"cmd/agentshim/internal/doctor":       {own: []string{"schema", "bus", "bus/server/certs", "bus/client", "bus/chown", "cmd/agentshim/...", "cmd/internal/pace"}, modules: []string{modNKeys, modJSON, modNATS}}, // to read what a credential may do
		"cmd/agentshim/...": {own: []string{"schema", "schema/guard", "schema/match", "schema/trace", "bus", "bus/server/certs", "bus/client", "bus/otlp", "bus/chown", "bus/agent/render", "bus/proctree", "bus/snapshot", "cmd/agentshim/...", "cmd/internal/pace", "cmd/internal/program"},
			modules: []string{modCobra, "github.com/spf13/pflag", modNATS, modUUID, modJSON, modSync, "golang.org/x/sys"}},
		"cmd/broker/...": {
			own: []string{"schema", "schema/hooksyaml", "schema/redact", "schema/trace", "bus", "bus/server/access", "bus/server/realm", "bus/aggregator", "bus/aggregator/observe", "bus/aggregator/ratelimit", "bus/server/certs", "bus/dispatch", "bus/dispatch/cond", "bus/server",
				"bus/chown", "bus/snapshot", "bus/state", "bus/state/...", "builtin", "workers", "cmd/broker/...", "cmd/internal/..."},
			modules: []string{modCobra, "github.com/spf13/pflag", modNATS, modNUID, modUUID, modProm, "github.com/fsnotify/fsnotify", "github.com/rogpeppe/go-internal/diff"},
		},
		"cmd/hookworker/...": {
			own:     []string{"schema", "schema/trace", "bus", "bus/server/certs", "workers", "cmd/hookworker/...", "cmd/internal/..."},
			modules: []string{modCobra, modNATS, modProm, modUUID},
		},
		"loadtest/...": {
			own: []string{"schema", "schema/hooksyaml", "bus", "bus/bustest/ports", "bus/client", "bus/agent/loop", "bus/state/record", "workers", "cmd/agentshim/app", "cmd/agentshim/daemon", "cmd/broker/app", "cmd/hookworker/app", "loadtest/..."},
			modules: []string{modCobra, "github.com/spf13/pflag", modNATS, modServer, modUUID, modJSON, "golang.org/x/sync", "golang.org/x/sys",
				"github.com/HdrHistogram/hdrhistogram-go", "go.yaml.in/yaml/v4", modProm, "gonum.org/v1/plot", "golang.org/x/perf"},
		},

		// The map, and the tests of all of it together, import nothing.
		"":                       {},
		"deploy/grafana/dashgen": {modules: []string{modJSON}},
		"cmd/e2e":                {},
		"cmd/e2e/fabric":         {},
		"cmd/e2e/clients":        {},
		"cmd/e2e/clients/...":    {own: []string{"schema", "cmd/e2e/clients/..."}, modules: []string{modJSON}},
	}
}

// TestRooms holds the walls between the packages.
func TestRooms(t *testing.T) {
	plan := rooms()
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, modPath), "/")
		r, ok := roomOf(plan, name)
		if !ok {
			t.Errorf("the package %s is in no room; add a line to rooms in arch_test.go that says what it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			if why := r.refuses(imported); why != "" {
				t.Errorf("%s imports %s: %s; move the code to the room that may, or say in rooms why this one may, too",
					name, strings.TrimPrefix(imported, modPath+"/"), why)
			}
		}
	}
}

// roomOf is the line of the plan that is for the package called name.
func roomOf(plan map[string]room, name string) (room, bool) {
	if r, ok := plan[name]; ok {
		return r, true
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if r, ok := plan[dir+"/..."]; ok {
			return r, true
		}
	}
	return room{}, false
}

// refuses says why a package of r must not import what it imports; empty: it may.
func (r room) refuses(imported string) string {
	if own, ok := strings.CutPrefix(imported, modPath+"/"); ok {
		if slices.ContainsFunc(r.own, func(allowed string) bool { return covers(allowed, own) }) {
			return ""
		}
		return "that package is above it, or none of its business"
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		if slices.Contains(r.not, imported) {
			return "this room does no I/O"
		}
		return ""
	}
	if slices.ContainsFunc(r.modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
		return ""
	}
	return "this room knows nothing of that module"
}

func covers(allowed, name string) bool {
	dir, below := strings.CutSuffix(allowed, "/...")
	return name == dir || below && strings.HasPrefix(name, dir+"/")
}

// TestTheShimStaysLight holds what a process links that starts once per tool call.
func TestTheShimStaysLight(t *testing.T) {
	heavy := []string{modProm, modServer, modNATS + "/jetstream", modNATS + "/micro", "cel.dev", "go.yaml.in", "go.opentelemetry.io", "google.golang.org",
		modPath + "/workers", modPath + "/bus/dispatch", modPath + "/bus/state", modPath + "/builtin",
		modPath + "/schema/hooksyaml"}
	linked := list(t, "-deps", "./cmd/agentshim")
	for _, h := range heavy {
		if slices.ContainsFunc(linked, func(p listed) bool { return covers(h+"/...", p.ImportPath) }) {
			t.Errorf("agentshim links %s; its start is paid at every tool call, so it links nats.go and schema and nothing heavier", h)
		}
	}
}

// TestTheClientBringsNoServer holds what programs of users link with the packages meant for them.
func TestTheClientBringsNoServer(t *testing.T) {
	for _, pkg := range []string{"./bus", "./bus/client", "./workers"} {
		for _, p := range list(t, "-deps", pkg) {
			if covers(modServer+"/...", p.ImportPath) {
				t.Errorf("%s links %s; only bus/server knows the server", pkg, p.ImportPath)
			}
		}
	}
}

// listed is a package and what it imports.
type listed struct {
	ImportPath string
	Imports    []string
}

// list is what `go list` says of the packages.
func list(t *testing.T, args ...string) (all []listed) {
	t.Helper()
	args = append([]string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all = append(all, listed{ImportPath: words[0], Imports: words[1:]})
	}
	return all
}

// TestTheFolders holds what lies at the top of the repository.
func TestTheFolders(t *testing.T) {
	allowed := []string{"builtin", "bus", "cmd", "deploy", "loadtest", "schema", "workers", // the rooms
		".ci", ".git", ".github", "bin", "profiles", ".idea", ".vscode"} // the kit, and what git ignores
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(allowed, e.Name()) {
			t.Errorf("the folder %s is no room of the house; put what is in it into one of them, or plan a new room here and in doc.go", e.Name())
		}
	}
}

// maxLines is how long a file may be; most are far shorter.
const maxLines = 500

// TestTheSources holds what every file of Go code keeps to.
func TestTheSources(t *testing.T) {
	told := map[string]bool{} // by folder: whether its package says what it is
	for file, src := range sources(t) {
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines; more than %d in one file is more than one subject: split it", file, n, maxLines)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		told[dir] = told[dir] || parsed.Doc != nil
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function; wire things in main, or in a function that says what it makes", file)
			}
		}
		if strings.HasSuffix(file, "_test.go") && sleeps(parsed) {
			t.Errorf("%s calls time.Sleep; wait for what happens, on a channel, or use testing/synctest, whose clock is not real", file)
		}
	}
	for dir, ok := range told {
		if !ok {
			t.Errorf("no file in %s says what the package is; begin one with a comment: // Package …", dir)
		}
	}
}

// sources are all files of Go code by their paths.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || file != "." && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case e.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		all[file], err = os.ReadFile(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sleeps(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			pkg, ok := s.X.(*ast.Ident)
			found = found || ok && pkg.Name == "time"
		}
		return !found
	})
	return found
}
