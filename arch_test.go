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

// A layerRule says what a package may import. The standard library is allowed, except
// the packages in not.
type layerRule struct {
	own     []string // packages of this module
	modules []string // other modules
	not     []string // packages of the standard library
}

// Modules that several rules name.
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

// layerRules returns the rules by package, from the lowest layer to the highest. A name
// that ends in /... is for all packages below it that have no rule of their own.
func layerRules() map[string]layerRule {
	io := []string{"net", "net/http", "os", "os/exec"}
	return map[string]layerRule{
		// Data, no I/O.
		"schema":                    {own: []string{"schema/plainjson", "schema/trace"}, modules: []string{modJSON}, not: io},
		"schema/trace":              {not: io},
		"schema/plainjson":          {modules: []string{modJSON}, not: io},
		"schema/action":             {own: []string{"schema"}, modules: []string{modJSON, "mvdan.cc/sh"}, not: io},
		"schema/match":              {modules: []string{"github.com/gobwas/glob"}, not: io},
		"schema/guard":              {own: []string{"schema", "schema/match"}, not: io},
		"schema/redact":             {own: []string{"schema", "schema/match"}, modules: []string{modJSON}, not: io},
		"schema/hooksyaml":          {own: []string{"schema", "schema/match"}, modules: []string{"go.yaml.in/yaml/v4", modJSON}, not: io},
		"schema/internal/schemagen": {own: []string{"schema"}, modules: []string{modJSON, "github.com/google/jsonschema-go"}},

		// Decisions, no NATS. The model must not import the code that it checks.
		"bus/dispatch":           {own: []string{"schema", "schema/guard", "schema/trace"}, modules: []string{modJSON, modSync}, not: io},
		"bus/dispatch/cond":      {own: []string{"schema", "schema/action", "schema/match", "schema/redact", "bus/dispatch"}, modules: []string{"cel.dev/cel-go", modJSON}, not: io},
		"bus/internal/model":     {own: []string{"schema"}, modules: []string{modJSON}, not: io},
		"bus/internal/model/gen": {own: []string{"schema", "bus/internal/model"}, modules: []string{modJSON, "pgregory.net/rapid"}},

		// I/O: the bus.
		"bus": {own: []string{"schema", "schema/trace", "bus/internal/natsconn", "bus/server/certs", "bus/chown"}, modules: []string{modNATS, modNKeys, modUUID}},
		// What nats.go does and does not document.
		"bus/internal/natsconn": {modules: []string{modNATS}},
		// Permissions are data; only the realm reads keys.
		"bus/server/access": {own: []string{"schema", "bus"}, not: io},
		"bus/server/realm":  {own: []string{"schema", "bus", "bus/server/access", "bus/chown"}, modules: []string{modNKeys, modJWT}},
		"bus/server/certs":  {own: []string{"bus/chown"}},
		"bus/chown":         {},
		"bus/proctree":      {},
		"bus/client":        {own: []string{"schema", "schema/guard", "schema/trace", "bus", "bus/server/certs", "bus/snapshot"}, modules: []string{modNATS, modUUID, modJSON}},
		"bus/snapshot":      {modules: []string{"golang.org/x/sys"}},
		"bus/state":         {own: []string{"schema", "bus", "bus/state/kv"}, modules: []string{modNATS, modUUID, modNUID}},
		"bus/state/kv":      {own: []string{"schema", "bus"}, modules: []string{modNATS, modUUID, modNUID}},
		"bus/state/...":     {own: []string{"schema", "schema/match", "schema/redact", "bus", "bus/state/kv"}, modules: []string{modNATS, modUUID, modNUID, modJSON, modSync}},
		"bus/state/record":  {own: []string{"schema", "schema/match", "schema/plainjson", "schema/redact", "bus", "bus/state/kv"}, modules: []string{modNATS, modNUID, modJSON, modSync, "github.com/klauspost/compress"}},
		"bus/server":        {own: []string{"schema", "bus", "bus/server/access", "bus/server/realm", "bus/server/certs", "bus/server/internal/blocks", "bus/chown"}, modules: []string{modNATS, modServer, modJWT, modNKeys, "golang.org/x/crypto"}},
		// The contract in it must not import the code that it checks.
		"bus/bustest": {own: []string{"schema", "schema/guard", "bus", "bus/server", "bus/server/certs"}, modules: []string{modJSON, modNATS, modServer}},
		// The files of the NATS server, which only its source documents.
		"bus/server/internal/blocks": {modules: []string{"github.com/klauspost/compress", "github.com/minio/highwayhash"}},
		// The parts of the aggregator import only parts below them.
		"bus/aggregator": {own: []string{"schema", "schema/guard", "schema/trace", "bus", "bus/aggregator/...", "bus/dispatch", "bus/state", "bus/state/freezes"},
			modules: []string{modNATS, modNUID, modProm}},
		"bus/aggregator/control": {own: []string{"schema", "schema/guard", "schema/hooksyaml", "bus", "bus/aggregator/deliver", "bus/aggregator/internal/intake", "bus/aggregator/internal/lifetime", "bus/aggregator/observe",
			"bus/aggregator/ratelimit", "bus/aggregator/internal/stages", "bus/aggregator/stores", "bus/dispatch", "bus/state", "bus/state/..."}, modules: []string{modNATS, modJSON, modSync, modUUID}},
		"bus/aggregator/deliver": {own: []string{"schema", "schema/trace", "bus", "bus/aggregator/internal/lifetime", "bus/aggregator/observe", "bus/aggregator/internal/stages", "bus/aggregator/stores",
			"bus/dispatch", "bus/state/kv", "bus/state/queue", "bus/state/rounds", "bus/state/sessions"}, not: io},
		"bus/aggregator/internal/intake":   {own: []string{"schema", "bus", "bus/aggregator/observe", "bus/aggregator/ratelimit", "bus/dispatch"}, modules: []string{modNATS, modProm, modSync}},
		"bus/aggregator/internal/remote":   {own: []string{"schema", "bus", "bus/dispatch"}, modules: []string{modNATS}},
		"bus/aggregator/internal/stages":   {own: []string{"schema", "bus/dispatch"}, not: io},
		"bus/aggregator/stores":            {own: []string{"schema", "bus/state/queue", "bus/state/rounds", "bus/state/sessions"}},
		"bus/aggregator/ratelimit":         {not: io},
		"bus/aggregator/internal/lifetime": {own: []string{"schema"}, not: io},
		"bus/aggregator/internal/logevery": {not: io},
		// It tells operators what happened, and decides nothing.
		"bus/aggregator/observe": {own: []string{"schema", "bus", "bus/aggregator/internal/logevery", "bus/dispatch", "bus/state/queue", "bus/state/record"}, modules: []string{modNATS, modProm}},
		"bus/agent/render":       {own: []string{"schema"}, modules: []string{modJSON}, not: io},
		"bus/agent/loop":         {own: []string{"schema", "bus", "bus/client", "bus/agent/render", "bus/dispatch"}, modules: []string{modJSON, modUUID}},
		"bus/agent/llm":          {own: []string{"schema", "bus/agent/render", "bus/chown"}, modules: []string{modJSON}},
		"bus/agent/sdktest":      {own: []string{"schema"}},

		// I/O: workers and their runners.
		"workers":                {own: []string{"schema", "schema/action", "schema/trace", "bus", "bus/dispatch", "bus/state"}, modules: []string{modNATS, modProm, modUUID, modJSON, modSync}},
		"workers/internal/child": {own: []string{"bus/proctree"}, modules: []string{"golang.org/x/sys"}},
		"workers/cel":            {own: []string{"schema", "bus/dispatch", "bus/dispatch/cond", "workers"}},
		"workers/rules":          {own: []string{"schema", "schema/action", "schema/match", "bus/dispatch", "bus/dispatch/cond", "workers"}, modules: []string{modJSON, "github.com/BobuSumisu/aho-corasick"}, not: io},
		"workers/...":            {own: []string{"schema", "schema/trace", "bus/chown", "workers", "workers/internal/child"}, modules: []string{modJSON, modCmp, "golang.org/x/sys"}},
		// The tests of runners fold answers as the fabric does.
		"workers/runnertest": {own: []string{"schema", "workers", "bus/dispatch"}, modules: []string{modJSON, modCmp, "golang.org/x/sys"}},
		// x/text compares paths in one Unicode form; x/sys resolves them as the process of a tool does.
		"builtin/packs": {not: io},
		"builtin":       {own: []string{"schema", "schema/redact", "schema/trace", "workers"}, modules: []string{modJSON, "golang.org/x/sys", "golang.org/x/text"}},

		// Programs: flags and wiring.
		"cmd/internal/pace":              {},
		"cmd/internal/otlp":              {own: []string{"schema", "schema/trace", "bus/server/certs"}},
		"cmd/internal/netns":             {modules: []string{"golang.org/x/sys"}},
		"cmd/internal/program":           {own: []string{"schema", "bus/server/certs"}, modules: []string{modCobra, "github.com/spf13/pflag", "golang.org/x/sys"}},
		"cmd/internal/ops":               {own: []string{"schema/trace", "bus/server/certs", "cmd/internal/otlp", "cmd/internal/program"}, modules: []string{modProm}},
		"cmd/internal/runners":           {own: []string{"schema", "builtin", "workers", "workers/..."}},
		"cmd/agentshim/internal/dialect": {own: []string{"schema"}, modules: []string{modJSON}},
		"cmd/agentshim/internal/install": {own: []string{"schema", "bus/server/certs", "bus/chown", "cmd/agentshim/internal/install/...", "cmd/agentshim/internal/peer", "cmd/agentshim/internal/probe"},
			modules: []string{modJSON, "github.com/pelletier/go-toml/v2", "github.com/rogpeppe/go-internal/diff", "golang.org/x/sys"}}, // x/sys exchanges two files atomically
		"cmd/agentshim/internal/install/edit": {own: []string{"schema"}, modules: []string{modJSON}, not: io},
		"cmd/agentshim/internal/doctor":       {own: []string{"schema", "bus", "bus/server/certs", "bus/client", "bus/chown", "cmd/agentshim/...", "cmd/internal/pace"}, modules: []string{modNKeys, modJSON, modNATS}}, // to read what a credential may do
		"cmd/agentshim/...": {own: []string{"schema", "schema/guard", "schema/match", "schema/trace", "bus", "bus/server/certs", "bus/client", "bus/chown", "bus/agent/render", "bus/proctree", "bus/snapshot", "cmd/agentshim/...", "cmd/internal/otlp", "cmd/internal/pace", "cmd/internal/program"},
			modules: []string{modCobra, "github.com/spf13/pflag", modNATS, modUUID, modJSON, modSync, "golang.org/x/sys"}},
		"cmd/broker/...": {
			own: []string{"schema", "schema/hooksyaml", "schema/match", "schema/redact", "schema/trace", "bus", "bus/server/access", "bus/server/realm", "bus/aggregator", "bus/aggregator/control", "bus/aggregator/deliver", "bus/aggregator/observe", "bus/aggregator/ratelimit", "bus/aggregator/stores", "bus/server/certs", "bus/dispatch", "bus/dispatch/cond", "bus/server",
				"bus/chown", "bus/snapshot", "bus/state", "bus/state/...", "builtin", "builtin/packs", "workers", "workers/cel", "workers/rules", "cmd/broker/...", "cmd/internal/..."},
			modules: []string{modCobra, modJSON, modSync, "go.yaml.in/yaml/v4", "github.com/spf13/pflag", modNATS, modNUID, modUUID, modProm, "github.com/fsnotify/fsnotify", "github.com/rogpeppe/go-internal/diff"},
		},
		"cmd/hookworker/...": {
			own:     []string{"schema", "schema/trace", "bus", "bus/server/certs", "workers", "cmd/hookworker/...", "cmd/internal/..."},
			modules: []string{modCobra, modNATS, modProm, modUUID},
		},
		"loadtest/...": {
			own: []string{"schema", "schema/hooksyaml", "bus", "bus/bustest", "bus/client", "bus/agent/loop", "bus/state/record", "workers", "cmd/agentshim/app", "cmd/agentshim/daemon", "cmd/broker/app", "cmd/hookworker/app", "loadtest/..."},
			modules: []string{modCobra, "github.com/spf13/pflag", modNATS, modServer, modUUID, modJSON, "golang.org/x/sync", "golang.org/x/sys",
				"github.com/HdrHistogram/hdrhistogram-go", "go.yaml.in/yaml/v4", modProm, "gonum.org/v1/plot", "golang.org/x/perf", "github.com/google/pprof"},
		},

		// The documents, and the tests of whole processes, import nothing outside tests.
		"":                       {},
		"deploy/grafana/dashgen": {modules: []string{modJSON}},
		"cmd/e2e":                {},
		"cmd/e2e/fabric":         {},
		"cmd/e2e/clients":        {},
		"cmd/e2e/clients/...":    {own: []string{"schema", "cmd/e2e/clients/..."}, modules: []string{modJSON}},
	}
}

// TestPackagesImportOnlyWhatTheirLayerAllows keeps the layers of doc.go apart.
func TestPackagesImportOnlyWhatTheirLayerAllows(t *testing.T) {
	rules := layerRules()
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, modPath), "/")
		r, ok := ruleFor(rules, name)
		if !ok {
			t.Errorf("the package %s has no layer rule; add one to layerRules in arch_test.go", name)
			continue
		}
		for _, imported := range p.Imports {
			if why := r.violation(imported); why != "" {
				t.Errorf("%s imports %s: %s; move the code to a package that may import it, or extend the rule in layerRules and say why",
					name, strings.TrimPrefix(imported, modPath+"/"), why)
			}
		}
	}
}

// ruleFor returns the rule for the package called name.
func ruleFor(rules map[string]layerRule, name string) (layerRule, bool) {
	if r, ok := rules[name]; ok {
		return r, true
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if r, ok := rules[dir+"/..."]; ok {
			return r, true
		}
	}
	return layerRule{}, false
}

// violation says why r forbids an import; it is empty if r allows it.
func (r layerRule) violation(imported string) string {
	if own, ok := strings.CutPrefix(imported, modPath+"/"); ok {
		if slices.ContainsFunc(r.own, func(allowed string) bool { return covers(allowed, own) }) {
			return ""
		}
		return "its rule does not list that package"
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		if slices.Contains(r.not, imported) {
			return "its layer does no I/O"
		}
		return ""
	}
	if slices.ContainsFunc(r.modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
		return ""
	}
	return "its rule does not list that module"
}

// covers reports whether allowed, which may end in /..., includes the package called name.
func covers(allowed, name string) bool {
	dir, below := strings.CutSuffix(allowed, "/...")
	return name == dir || below && strings.HasPrefix(name, dir+"/")
}

// TestTheShimLinksNoHeavyPackages keeps agentshim, which starts once per tool call, small.
func TestTheShimLinksNoHeavyPackages(t *testing.T) {
	heavy := []string{modProm, modServer, modNATS + "/jetstream", modNATS + "/micro", "cel.dev", "go.yaml.in", "go.opentelemetry.io", "google.golang.org",
		modPath + "/workers", modPath + "/bus/dispatch", modPath + "/bus/state", modPath + "/builtin",
		modPath + "/schema/hooksyaml"}
	linked := list(t, "-deps", "./cmd/agentshim")
	for _, h := range heavy {
		if slices.ContainsFunc(linked, func(p listed) bool { return covers(h+"/...", p.ImportPath) }) {
			t.Errorf("agentshim links %s; it starts at every tool call, so it links nats.go and schema and nothing heavier", h)
		}
	}
}

// TestPublicPackagesDoNotLinkTheServer keeps the NATS server out of programs of users.
func TestPublicPackagesDoNotLinkTheServer(t *testing.T) {
	for _, pkg := range []string{"./bus", "./bus/client", "./workers"} {
		for _, p := range list(t, "-deps", pkg) {
			if covers(modServer+"/...", p.ImportPath) {
				t.Errorf("%s links %s; only bus/server may link the NATS server", pkg, p.ImportPath)
			}
		}
	}
}

// listed is a package with its imports.
type listed struct {
	ImportPath string
	Imports    []string
}

// list returns the packages that `go list` prints.
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

// TestTheRootHasOnlyKnownFolders keeps the root of the repository small.
func TestTheRootHasOnlyKnownFolders(t *testing.T) {
	allowed := []string{"builtin", "bus", "cmd", "deploy", "loadtest", "schema", "workers",
		".ci", ".git", ".github", "bin", "profiles", ".idea", ".vscode"} // tools, and folders that git ignores
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(allowed, e.Name()) {
			t.Errorf("the folder %s is not one of the layout; move its files into one that is, or add it here and to doc.go", e.Name())
		}
	}
}

// maxLines bounds the lines of a file.
const maxLines = 500

// TestGoFilesFollowTheRules checks the length of files, init functions, sleeps in tests and
// package comments.
func TestGoFilesFollowTheRules(t *testing.T) {
	documented := map[string]bool{} // by folder: whether a file has a package comment
	for file, src := range sources(t) {
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines; split it into files of at most %d", file, n, maxLines)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function; construct values in main, or in a named function", file)
			}
		}
		if strings.HasSuffix(file, "_test.go") && sleeps(parsed) {
			t.Errorf("%s calls time.Sleep; wait on a channel, or with <-time.After(d) in a bubble of testing/synctest", file)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("no file in %s has a package comment; begin one with: // Package …", dir)
		}
	}
}

// notForUsers is the line of a package comment that keeps other modules out.
const notForUsers = "Only this module imports it."

// maxUserPackages bounds the packages that users may import.
const maxUserPackages = 20

// TestEachPackageIsForUsersOrSaysThatItIsNot compares doc.go's list of packages for users with the
// package comments. Packages in internal folders, programs and test support need no mark.
func TestEachPackageIsForUsersOrSaysThatItIsNot(t *testing.T) {
	users := userPackages(t)
	if len(users) > maxUserPackages {
		t.Errorf("doc.go lists %d packages for users; move some to internal folders until they are at most %d", len(users), maxUserPackages)
	}
	marked := map[string]bool{} // by package: whether it says that it is not for users
	for file, src := range sources(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := path.Dir(file)
		marked[dir] = marked[dir] || bytes.Contains(src, []byte("\n// "+notForUsers+"\npackage "))
	}
	for dir, isMarked := range marked {
		isUsers := slices.Contains(users, dir)
		top, _, _ := strings.Cut(dir, "/")
		switch {
		case isUsers && isMarked:
			t.Errorf("doc.go lists %s for users, but its package comment ends with %q", dir, notForUsers)
		case isUsers || isMarked || dir == "." || slices.Contains([]string{"cmd", "loadtest", "deploy"}, top):
		case strings.Contains(dir, "internal") || strings.HasSuffix(dir, "test"):
		default:
			t.Errorf("%s is neither in doc.go's list of packages for users nor marked; end its package comment with %q, or add it to the list", dir, notForUsers)
		}
	}
	for _, dir := range users {
		if _, ok := marked[dir]; !ok {
			t.Errorf("doc.go lists %s, which is not a package", dir)
		}
	}
}

// userPackages returns the packages that doc.go lists for users.
func userPackages(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n// # Packages for users\n")
	section, _, _ = strings.Cut(section, "\n// # ")
	for line := range strings.Lines(section) {
		if entry, ok := strings.CutPrefix(line, "//\t"); ok {
			all = append(all, strings.Fields(entry)[0])
		}
	}
	if len(all) == 0 {
		t.Fatal("doc.go has no list of packages for users")
	}
	return all
}

// sources returns all Go files by their paths.
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

// sleeps reports whether f calls time.Sleep.
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
