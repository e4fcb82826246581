package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// tree makes folders (names that end in a slash), files, and links ("a -> b") below a new
// folder, and returns it.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, target, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case link:
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", dir), path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func permission(t testing.TB, options map[string]any) workers.Handler {
	t.Helper()
	h, err := Catalog(nil)["path_permission"](schema.Hook{Name: "test", Handler: "path_permission", Event: schema.PreToolUse, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// judged returns the reason why a tool call of an agent in cwd is refused; empty: it is
// not.
func judged(t testing.TB, h workers.Handler, cwd, tool, input string) string {
	t.Helper()
	e := &schema.Event{HookType: schema.PreToolUse, ToolName: tool, ToolInput: jsontext.Value(input), Cwd: cwd}
	res, err := h.Handle(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if res.Decision != schema.None && res.Decision != schema.Deny || (res.Decision == schema.Deny) == (res.Reason == "") {
		t.Errorf("the answer is %+v", res)
	}
	return res.Reason
}

// An empty refused means that the call is allowed.
type call struct{ tool, input, refused string }

func judgeAll(t *testing.T, h workers.Handler, dir string, calls map[string]call) {
	t.Helper()
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			got := judged(t, h, filepath.Join(dir, "w"), c.tool, strings.ReplaceAll(c.input, "ROOT", dir))
			if (c.refused == "") != (got == "") || !strings.Contains(got, c.refused) {
				t.Errorf("%q, want %q in it", got, c.refused)
			}
		})
	}
}

func work(t testing.TB) string {
	return tree(t, "w/src/main.go", "w/secret/key", "w/vendor/lib.go", "w/vendor/own/x.go", "w/out -> ROOT/other", "w/in -> src", "w/hidden -> secret",
		"w/loop -> loop", "w/vendor/link -> ../src/main.go", "w/secret/pub -> ../src", "w/vendor/own/dir/", "w/deep -> vendor/own/dir", "other/file", "wx/file", "alias -> w")
}

func workRules() map[string]any {
	return map[string]any{"allow": []any{".", "./vendor/own"}, "deny": []any{"./secret"}, "read_only": []any{"./vendor"}}
}

func TestPathsAreComparedWithTheRoots(t *testing.T) {
	dir := work(t)
	judgeAll(t, permission(t, workRules()), dir, map[string]call{
		"a file inside":                     {"Read", `{"file_path":"ROOT/w/src/main.go"}`, ""},
		"a new file inside":                 {"Write", `{"file_path":"ROOT/w/a/b/c"}`, ""},
		"a relative one":                    {"Write", `{"file_path":"src/new.go"}`, ""},
		"a file outside":                    {"Read", `{"file_path":"ROOT/other/file"}`, "is outside the allowed folders: ., ./vendor/own, ./vendor (to read)"},
		"a folder with a longer name":       {"Read", `{"file_path":"ROOT/wx/file"}`, "outside"},
		"the folder above":                  {"LS", `{"path":".."}`, "outside"},
		"up and down again":                 {"Read", `{"file_path":"../w/src/main.go"}`, ""},
		"up and out":                        {"Read", `{"file_path":"src/../../other/file"}`, "outside"},
		"up from a missing folder":          {"Write", `{"file_path":"no/such/../../../x"}`, "outside"},
		"up from a file":                    {"Read", `{"file_path":"src/main.go/../../../other/file"}`, "outside"},
		"a link that stays":                 {"Write", `{"file_path":"in/main.go"}`, ""},
		"a link that leads out":             {"Read", `{"file_path":"out/file"}`, "outside"},
		"a new file through it":             {"Write", `{"file_path":"out/new"}`, "outside"},
		"up from where a link leads":        {"Read", `{"file_path":"out/../x"}`, "outside"},
		"up from a link, by its name":       {"Read", `{"file_path":"vendor/link/../../../other/file"}`, "outside"},
		"up from a link, inside for some":   {"Read", `{"file_path":"deep/../../other/file"}`, "outside"},
		"a link to itself":                  {"Read", `{"file_path":"loop"}`, "too many symbolic links"},
		"a link above":                      {"Write", `{"file_path":"ROOT/alias/src/main.go"}`, ""},
		"a denied file":                     {"Read", `{"file_path":"secret/key"}`, "is in ./secret, which is not allowed"},
		"the denied folder itself":          {"LS", `{"path":"secret"}`, "not allowed"},
		"a link to it":                      {"Read", `{"file_path":"hidden/key"}`, "is in ./secret"},
		"a link out of it":                  {"Read", `{"file_path":"secret/pub/main.go"}`, "is in ./secret"},
		"all below, with it":                {"Grep", `{"pattern":"x","path":"ROOT/w"}`, "contains ./secret"},
		"all below, beside it":              {"Grep", `{"pattern":"x","path":"src"}`, ""},
		"all below the agent":               {"Grep", `{"pattern":"x"}`, "contains ./secret"},
		"the names below the agent":         {"Glob", `{"pattern":"**/*.go"}`, ""},
		"reading a read-only file":          {"Read", `{"file_path":"vendor/lib.go"}`, ""},
		"searching a read-only folder":      {"Grep", `{"path":"vendor","pattern":"x"}`, ""},
		"writing a read-only file":          {"Write", `{"file_path":"vendor/lib.go"}`, "is read-only"},
		"an island to write":                {"Write", `{"file_path":"vendor/own/x.go"}`, ""},
		"a link out of a read-only folder":  {"Write", `{"file_path":"vendor/link"}`, "is read-only"},
		"moving a folder with a denied one": {"move_file", `{"source":"ROOT/w","destination":"ROOT/w/y"}`, "contains ./secret"},
		"moving out":                        {"move_file", `{"source":"src/main.go","destination":"/x"}`, "/x is outside"},
		"moving inside":                     {"move_file", `{"source":"src/main.go","destination":"src/b.go"}`, ""},
		"several, one of them outside":      {"read_multiple_files", `{"paths":["src/main.go","/etc/passwd"]}`, "/etc/passwd"},
		"no file":                           {"Read", `{}`, "names no file"},
		"an empty name":                     {"Read", `{"file_path":""}`, "is empty"},
		"null":                              {"Read", `{"file_path":null}`, "names no file"},
		"a number":                          {"Write", `{"file_path":5}`, "is not a path"},
		"no input":                          {"Write", ``, "names no file"},
		"a name twice":                      {"Read", `{"file_path":"src/main.go","file_path":"/etc/passwd"}`, "the hook cannot read its input"},
		"two names":                         {"Read", `{"file_path":"src/main.go","path":"/etc/passwd"}`, "/etc/passwd"},
		"a user's home":                     {"Read", `{"file_path":"~/.ssh/id_rsa"}`, "a variable or ~"},
		"a variable":                        {"Read", `{"file_path":"$HOME/x"}`, "a variable"},
		"a URL":                             {"read_media_file", `{"path":"https://host/x"}`, "is a URL"},
		"a URL of a file inside":            {"Read", `{"file_path":"file://ROOT/w/src/main%2ego"}`, ""},
		"a URL of a file outside":           {"Read", `{"file_path":"file:///etc/passwd"}`, "outside"},
		"a URL of another machine":          {"Read", `{"file_path":"file://host/w"}`, "names no file here"},
		"a path of Windows":                 {"Read", `{"file_path":"C:\\x"}`, "another operating system"},
		"a zero":                            {"Read", `{"file_path":"src/main.go\u0000.txt"}`, "contains a control character"},
		"a space before":                    {"Read", `{"file_path":" /etc/passwd"}`, "begins or ends with a space"},
		"a pattern that goes up":            {"Glob", `{"pattern":"*/../../other/*"}`, "can lead to a folder above"},
		"a pattern outside":                 {"Glob", `{"pattern":"/etc/**"}`, "outside"},
		"a pattern in braces":               {"Glob", `{"pattern":"{/etc,src}/*"}`, "/etc is outside"},
		"a pattern below a path":            {"Glob", `{"pattern":"../*","path":"src"}`, ""},
		"a pattern up from a path":          {"Glob", `{"pattern":"../../*","path":"src"}`, "outside"},
		"patterns to read":                  {"read_many_files", `{"paths":["src/*.go"]}`, ""},
		"patterns to read a denied file":    {"read_many_files", `{"paths":["src/a.go"],"include":["**/*"]}`, "contains ./secret"},
		"no path where none is needed":      {"list_directory", `{}`, ""},
		"an unknown tool without a path":    {"new_answer", `{"content":"see /etc/passwd"}`, ""},
		"an unknown tool with one":          {"mcp__x__shred", `{"path":"/etc/passwd"}`, "outside"},
		"an unknown tool, deeper down":      {"mcp__x__batch", `{"ops":[{"do":{"file_path":"/etc/passwd"}}]}`, "outside"},
		"an unknown tool may change":        {"mcp__x__touch", `{"path":"vendor/lib.go"}`, "is read-only"},
		"an unknown tool, an odd path":      {"mcp__x__plot", `{"path":7}`, ""},
		"an edit of something else":         {"mcp__songs__edit", `{"song":7}`, ""},
		"a shell command":                   {"Bash", `{"command":"cat /etc/passwd","description":"--- x"}`, ""},
	})
}

// Each runtime has its own names for tools and members.
func TestPathsAreFoundInInputsOfAllRuntimes(t *testing.T) {
	dir := work(t)
	h := permission(t, workRules())
	for _, c := range []struct{ tool, input string }{
		{"Edit", `{"file_path":"P","old_string":"a","new_string":"b"}`}, {"MultiEdit", `{"file_path":"P","edits":[{"old_string":"a"}]}`},
		{"NotebookEdit", `{"notebook_path":"P","new_source":""}`}, {"LS", `{"path":"P"}`}, {"Glob", `{"path":"P","pattern":"*"}`},
		{"read_file", `{"absolute_path":"P"}`}, {"read_file", `{"file_path":"P","offset":1}`}, {"write_file", `{"file_path":"P","content":"x"}`},
		{"replace", `{"file_path":"P","instruction":"x"}`}, {"list_directory", `{"dir_path":"P"}`}, {"search_file_content", `{"pattern":"x","path":"P"}`},
		{"view", `{"path":"P"}`}, {"create", `{"path":"P","file_text":"x"}`}, {"edit", `{"path":"P","old_str":"a","new_str":"b"}`}, {"view_image", `{"path":"P"}`},
		{"edit", `{"filePath":"P","oldString":"a","newString":"b"}`}, {"read", `{"filePath":"P"}`}, {"write", `{"filePath":"P","content":""}`},
		{"view_file", `{"AbsolutePath":"P"}`}, {"write_to_file", `{"TargetFile":"P"}`}, {"list_dir", `{"DirectoryPath":"P"}`}, {"grep_search", `{"SearchPath":"P","Query":"x"}`},
		{"mcp__filesystem__read_text_file", `{"path":"P"}`}, {"mcp_filesystem_write_file", `{"path":"P"}`}, {"filesystem-edit_file", `{"path":"P"}`},
		{"filesystem_create_directory", `{"path":"P"}`}, {"MCP:directory_tree", `{"path":"P"}`}, {"mcp__filesystem__move_file", `{"source":"src/a","destination":"P"}`},
		{"mcp__filesystem__move_file", `{"source":"P","destination":"src/a"}`}, {"mcp__filesystem__read_multiple_files", `{"paths":["P"]}`},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Add File: P\n+one\n*** End Patch\n"}`}, {"apply_patch", `{"input":"*** Begin Patch\n*** Delete File: P\n*** End Patch"}`},
		{"apply_patch", `{"patchText":"*** Begin Patch\n*** Update File: src/a\n*** Move to: P\n*** End Patch"}`},
		{"shell", `{"command":["apply_patch","*** Begin Patch\n*** Update File: P\n*** End Patch"]}`},
		{"Bash", `{"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: P\n@@\n-a\n+b\n*** End Patch\nEOF"}`},
		{"exec_command", `{"cmd":"patch -p0 <<EOF\n--- P\n+++ P\n@@ -1 +1 @@\n-a\n+b\nEOF"}`},
	} {
		for path, want := range map[string]bool{"src/a": true, dir + "/w/src/a": true, "/etc/passwd": false, dir + "/w/secret/key": false} {
			input := strings.NewReplacer(`"P"`, `"`+path+`"`, `P\n`, path+`\n`).Replace(c.input)
			got := judged(t, h, filepath.Join(dir, "w"), c.tool, input)
			if (got == "") != want {
				t.Errorf("%s of %s: %q", c.tool, path, got)
			}
		}
	}
}

func TestEachFileOfAPatchIsChecked(t *testing.T) {
	dir := work(t)
	judgeAll(t, permission(t, workRules()), dir, map[string]call{
		"no file at all":                      {"apply_patch", `{"command":"*** Begin Patch\n*** End Patch"}`, "names no file"},
		"one of many":                         {"apply_patch", `{"command":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: ../b\n*** End Patch"}`, "outside"},
		"with a space before":                 {"apply_patch", `{"command":"*** Begin Patch\n  *** Add File: /b  \n+x\n*** End Patch"}`, "outside"},
		"a line of text":                      {"apply_patch", `{"command":"*** Begin Patch\n*** Add File: a\n+*** Delete File: /b\n*** End Patch"}`, ""},
		"in another folder":                   {"apply_patch", `{"workdir":"..","command":"*** Begin Patch\n*** Add File: a\n*** End Patch"}`, "outside"},
		"a read-only file":                    {"apply_patch", `{"command":"*** Begin Patch\n*** Update File: vendor/lib.go\n*** End Patch"}`, "is read-only"},
		"a diff of git":                       {"apply_patch", `{"patch":"diff --git a/src/a b/src/a\n--- a/src/a\n+++ b/src/a\t2026\n@@ -1 +1 @@\n-a\n+b\n"}`, ""},
		"a diff, denied":                      {"apply_patch", `{"patch":"--- a/secret/key\n+++ b/secret/key\n@@ -1 +1 @@\n-a\n+b\n"}`, "is in ./secret"},
		"a diff without prefixes":             {"apply_patch", `{"patch":"--- secret/key\n+++ secret/key\n"}`, "is in ./secret"},
		"a diff with another prefix":          {"apply_patch", `{"patch":"--- x/secret/key\n+++ y/secret/key\n"}`, "is in ./secret"},
		"a diff of a new file":                {"apply_patch", `{"patch":"--- /dev/null\n+++ b/src/new\n"}`, ""},
		"a diff that goes up":                 {"apply_patch", `{"patch":"--- a/x\n+++ b/../x\n"}`, "leads to a folder above"},
		"a rename":                            {"apply_patch", `{"patch":"diff --git a/src/a b/secret/a\nsimilarity index 100%\nrename from src/a\nrename to secret/a\n"}`, "is in ./secret"},
		"a change of mode":                    {"apply_patch", `{"patch":"diff --git a/vendor/x y b/vendor/x y\nold mode 100644\nnew mode 100755\n"}`, "is read-only"},
		"a name in quotes":                    {"apply_patch", `{"patch":"--- \"a/src/\\303\\244\"\n+++ \"b/secret/\\303\\244\"\n"}`, "is in ./secret"},
		"two names in quotes":                 {"apply_patch", `{"patch":"diff --git \"a/src/\\303\\244\" \"b/secret/\\303\\244\"\n"}`, "is in ./secret"},
		"a quote without an end":              {"apply_patch", `{"patch":"--- \"a/src\n"}`, "the hook cannot tell which file"},
		"names that run together":             {"apply_patch", `{"patch":"diff --git a/x y b/z y\n"}`, "the hook cannot tell which files"},
		"a context diff":                      {"apply_patch", `{"patch":"*** secret/key\t2026\n--- secret/key\t2026\n***************\n*** 1,2 ****\n--- 1,2 ----\n"}`, "is in ./secret"},
		"a shell that goes elsewhere":         {"Bash", `{"command":"cd ../other && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"}`, "outside"},
		"a shell that goes inside":            {"Bash", `{"command":"cd src && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ../a\n+x\n*** End Patch\nEOF"}`, ""},
		"a shell that hides where":            {"Bash", `{"command":"D=/; cd $D; apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"}`, "changes its folder"},
		"a shell with half a patch":           {"Bash", `{"command":"apply_patch '*** Begin Patch'"}`, "names no file"},
		"a shell that talks of one":           {"Bash", `{"command":"git log --grep patch\n"}`, ""},
		"another end of a line":               {"apply_patch", `{"command":"*** Begin Patch\n*** Update File: a\r*** Add File: /b\n+x\n*** End Patch"}`, "outside"},
		"a line inside of one":                {"apply_patch", `{"command":"*** Begin Patch\n*** Add File: a\n+x\u2028*** Delete File: /b\n*** End Patch"}`, "outside"},
		"a diff with other ends":              {"apply_patch", `{"patch":"--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n-a\n+b\f--- a/secret/key\f+++ b/secret/key\n"}`, "is in ./secret"},
		"a diff of another system":            {"apply_patch", `{"patch":"--- a/src/a\r\n+++ b/src/a\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n"}`, ""},
		"a shell that prints a header before": {"Bash", `{"command":"echo '--- a/src/a'\ncd /; patch -p1 <<'EOF'\n--- a/src/a\n+++ b/src/a\nEOF"}`, "changes its folder"},
		"a tool of its own":                   {"mcp__ed__change", `{"diff":"--- a/secret/key\n+++ b/secret/key\n"}`, "is in ./secret"},
	})
}

// Most programs strip the first part of a diff's paths. Together with it, a path must not
// be denied, but need not be allowed.
func TestADiffMustBeAllowedInOneReadingOnly(t *testing.T) {
	dir := work(t)
	judgeAll(t, permission(t, map[string]any{"allow": []any{"src"}, "deny": []any{"b"}}), dir, map[string]call{
		"allowed without the prefix": {"apply_patch", `{"patch":"--- a/src/x\n+++ w/src/x\n"}`, ""},
		"denied with it":             {"apply_patch", `{"patch":"--- a/src/x\n+++ b/src/x\n"}`, "is in b, which is not allowed"},
		"outside":                    {"apply_patch", `{"patch":"--- a/lib/x\n+++ w/lib/x\n"}`, "outside"},
	})
}

func TestRootsResolveAsTheOptionsSay(t *testing.T) {
	dir := work(t)
	for name, c := range map[string]struct {
		options map[string]any
		cwd     string
		calls   map[string]string // paths with the expected reason
	}{
		"relative to the agent":          {map[string]any{"allow": []any{"src"}}, dir + "/w", map[string]string{"src/x": "", "x": "outside"}},
		"relative to a base":             {map[string]any{"allow": []any{"src"}, "base": dir + "/w"}, dir, map[string]string{"w/src/x": "", "src/x": "outside"}},
		"relative to nothing":            {map[string]any{"allow": []any{"src"}}, "", map[string]string{"/x": `the root "src" is relative`}},
		"a path relative to nothing":     {map[string]any{"allow": []any{"/"}}, "", map[string]string{"x": "is relative", "/x": ""}},
		"an agent nowhere, with a base":  {map[string]any{"allow": []any{"."}, "base": dir + "/w"}, "", map[string]string{"x": "", "/x": "outside"}},
		"everything but":                 {map[string]any{"deny": []any{dir + "/w/secret"}}, dir, map[string]string{"/etc/x": "", "w/secret/key": "not allowed"}},
		"to read only, nothing else":     {map[string]any{"read_only": []any{"/"}}, dir, map[string]string{"w/x": "is read-only"}},
		"a root that is a link":          {map[string]any{"allow": []any{dir + "/alias"}}, dir, map[string]string{"w/x": "", "alias/x": "", "wx/file": "outside"}},
		"a root that is a file":          {map[string]any{"allow": []any{dir + "/w"}, "deny": []any{dir + "/w/src/main.go"}}, dir, map[string]string{"w/src/main.go": "not allowed", "w/src/b.go": ""}},
		"no links":                       {map[string]any{"allow": []any{dir + "/w"}, "follow": false}, dir, map[string]string{"w/in/x": "symbolic link", "w/src/x": ""}},
		"no links below a root":          {map[string]any{"allow": []any{dir + "/alias"}, "follow": false}, dir, map[string]string{"alias/in/x": "symbolic link", "alias/src/x": ""}},
		"the same root to read and not":  {map[string]any{"allow": []any{dir + "/w"}, "read_only": []any{dir + "/w/"}}, dir, map[string]string{"w/x": "is read-only"}},
		"a root that is not there (yet)": {map[string]any{"allow": []any{dir + "/w"}, "deny": []any{dir + "/w/later"}}, dir, map[string]string{"w/later/x": "not allowed", "w/x": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			h := permission(t, c.options)
			for path, want := range c.calls {
				got := judged(t, h, c.cwd, "Write", `{"file_path":"`+path+`"}`)
				if (want == "") != (got == "") || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q in it", path, got, want)
				}
			}
		})
	}
}

func TestAHardLinkToADeniedFileIsDenied(t *testing.T) {
	dir := tree(t, "w/key", "w/x")
	if err := os.Link(dir+"/w/key", dir+"/w/other"); err != nil {
		t.Skipf("HARD LINKS ARE NOT TESTED: the file system has none: %v", err)
	}
	h := permission(t, map[string]any{"allow": []any{dir + "/w"}, "deny": []any{dir + "/w/key"}})
	if got := judged(t, h, dir, "Read", `{"file_path":"w/other"}`); !strings.Contains(got, "w/key, which is not allowed") {
		t.Errorf("%q", got)
	}
}

func TestTheOptionShellRefusesShellCommands(t *testing.T) {
	h := permission(t, map[string]any{"allow": []any{"."}, "shell": "deny"})
	for tool, want := range map[string]bool{"Bash": true, "run_shell_command": true, "mcp__x__exec": true, "Shell": true, "Read": false, "bash_help": false} {
		if got := judged(t, h, "/w", tool, `{"command":"ls","file_path":"x"}`); strings.Contains(got, "shell commands are not allowed") != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

// For a tool with an unknown name, the kind from its runtime counts.
func TestTheRuntimesKindOfAToolCounts(t *testing.T) {
	h := permission(t, map[string]any{"allow": []any{"/w"}, "read_only": []any{"/r"}, "shell": "deny"})
	for kind, want := range map[string]string{"file.read": "", "file.write": "is read-only", "": "is read-only", "mcp": "is read-only", "shell": "shell commands"} {
		e := &schema.Event{HookType: schema.PreToolUse, ToolName: "peek", ToolKind: kind, ToolInput: jsontext.Value(`{"path":"/r/x"}`)}
		res, err := h.Handle(t.Context(), e)
		if err != nil || (want == "") != (res.Reason == "") || !strings.Contains(res.Reason, want) {
			t.Errorf("%s: %+v %v", kind, res, err)
		}
		e.ToolInput = nil
		res, err = h.Handle(t.Context(), e)
		if named := strings.Contains(res.Reason, "names no file"); err != nil || named != strings.HasPrefix(kind, "file.") {
			t.Errorf("%s without a path: %+v %v", kind, res, err)
		}
	}
}

func TestTooManyFilesInOneCallAreRefused(t *testing.T) {
	h := permission(t, map[string]any{"allow": []any{"/"}})
	paths := strings.Repeat(`"/a",`, maxUses)
	if got := judged(t, h, "/", "read_multiple_files", `{"paths":[`+paths+`"/a"]}`); !strings.Contains(got, "the limit is 1000") {
		t.Errorf("%q", got)
	}
	if got := judged(t, h, "/", "read_multiple_files", `{"paths":[`+strings.TrimSuffix(paths, ",")+`]}`); got != "" {
		t.Errorf("%q", got)
	}
}

// Every spelling of a path outside is refused. A spelling of a path inside is not, if its
// meaning is clear.
func TestNoSpellingLeadsOut(t *testing.T) {
	dir := work(t)
	h := permission(t, map[string]any{"allow": []any{"."}})
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"..", ".", "", "src", "in", "out", "no", "vendor", "link", "secret", "pub", "main.go"})
		path := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), "/")
		if strings.HasPrefix(path, "/") || path == "" {
			path = "./" + path
		}
		e := &schema.Event{HookType: schema.PreToolUse, ToolName: "Read", Cwd: dir + "/w", ToolInput: jsontext.Value(`{"file_path":"` + path + `"}`)}
		res, err := h.Handle(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(dir + "/w/" + path) // resolved by the system
		named := filepath.Join(dir, "w", path)
		out := err == nil && !below(real, dir+"/w") || !below(named, dir+"/w")
		if out && res.Decision != schema.Deny {
			t.Errorf("%s leads to %s, and is not refused", path, real)
		}
		if !out && err == nil && !strings.Contains(path, "..") && res.Decision == schema.Deny {
			t.Errorf("%s leads to %s, and is refused: %s", path, real, res.Reason)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Add File: a\n+x\n*** Move to: b\n*** End Patch\n")
	f.Add("diff --git \"a/\\303\" b/x\n--- a/x\t1\n+++ b/x\nrename to y\n*** 1,2 ****\n")
	f.Add("cd x && apply_patch <<EOF\n*** Begin Patch\n*** Update File: ../x\n*** End Patch\nEOF")
	h := permission(f, map[string]any{"allow": []any{"/w"}})
	f.Fuzz(func(t *testing.T, text string) {
		input, err := schema.Marshal(map[string]any{"command": text})
		if err != nil {
			t.Skip()
		}
		for _, tool := range []string{"apply_patch", "Bash"} {
			got := judged(t, h, "/w", tool, string(input))
			if tool == "apply_patch" && got == "" && firstHeader(text) < 0 {
				t.Error("a patch without a file passes")
			}
		}
		// A file outside is found at any place in a patch.
		input, err = schema.Marshal(map[string]any{"command": text + "\n*** Delete File: /etc/passwd\n"})
		if err == nil && judged(t, h, "/w", "apply_patch", string(input)) == "" {
			t.Error("a file outside passes")
		}
	})
}

func FuzzPathPermission(f *testing.F) {
	f.Add("Read", `{"file_path":"a/../../b"}`)
	f.Add("mcp__x__batch", `{"ops":[{"paths":["~",{"path":7}]}],"diff":"--- a"}`)
	f.Add("Glob", `{"pattern":"{a,/etc}/**","path":"x"}`)
	h := permission(f, map[string]any{"allow": []any{"."}, "deny": []any{"x"}, "read_only": []any{"y"}})
	f.Fuzz(func(t *testing.T, tool, input string) {
		judged(t, h, "/w", tool, input)
	})
}
