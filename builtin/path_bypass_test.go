package builtin

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// Each case names a denied or outside file in a way that some tool resolves.
func TestOtherSpellingsDoNotReachAForbiddenPath(t *testing.T) {
	dir := work(t)
	t.Chdir(dir + "/w") // so that a process's view of itself is the worker's
	if err := os.MkdirAll(dir+"/w/p1", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/other", dir+"/w/p1/peer"); err != nil {
		t.Fatal(err)
	}
	judgeAll(t, permission(t, workRules()), dir, map[string]call{
		// Paths that depend on the process that opens them.
		"the working folder of a process":   {"Read", `{"file_path":"/proc/self/cwd/secret/key"}`, "leads each process to another file"},
		"the same of a thread":              {"Read", `{"file_path":"/proc/thread-self/cwd/secret/key"}`, "leads each process to another file"},
		"the same of another process":       {"Read", `{"file_path":"/proc/1/cwd/secret/key"}`, "leads each process to another file"},
		"the root of a process":             {"Write", `{"file_path":"/proc/self/root/etc/x"}`, "leads each process to another file"},
		"the task of a process":             {"Read", `{"file_path":"/proc/self/task/1/cwd/x"}`, "leads each process to another file"},
		"an open file":                      {"Read", `{"file_path":"/dev/fd/3"}`, "leads each process to another file"},
		"the standard input":                {"Read", `{"file_path":"/dev/stdin"}`, "leads each process to another file"},
		"a file by its number":              {"Read", `{"file_path":"/.vol/1/2/secret"}`, "leads each process to another file"},
		"a view in other letters":           {"Read", `{"file_path":"/DEV/fd/3"}`, "leads each process to another file"},
		"a view with dots and slashes":      {"Read", `{"file_path":"/proc//./self/../self/cwd/secret/key"}`, "leads each process to another file"},
		"a view that dots take out":         {"Read", `{"file_path":"/proc/self/cwd/../../../../../ROOT/w/src/main.go"}`, "leads each process to another file"},
		"a view as a URL":                   {"Read", `{"file_path":"file:///proc/self/cwd/secret/key"}`, "leads each process to another file"},
		"a folder to search that is a view": {"Grep", `{"pattern":"x","path":"/proc/self/cwd"}`, "leads each process to another file"},
		"a pattern in a view":               {"Glob", `{"pattern":"/proc/self/cwd/s*/*"}`, "leads each process to another file"},
		"a patch in a view":                 {"apply_patch", `{"workdir":"/proc/self/cwd","command":"*** Begin Patch\n*** Add File: secret/x\n+x\n*** End Patch"}`, "leads each process to another file"},
		"an unknown tool's view":            {"mcp__x__open", `{"source":"/proc/self/cwd/secret/key"}`, "leads each process to another file"},

		// Patterns that expand to "..".
		"braces":                      {"Glob", `{"pattern":"{.,}./{.,}./other/*"}`, "outside"},
		"braces of nothing":           {"Glob", `{"pattern":"..{,}/other/*"}`, "outside"},
		"braces in braces":            {"Glob", `{"pattern":"{x,{.,y}.}/other/*"}`, "outside"},
		"braces around one word":      {"Glob", `{"pattern":"{..}/other/*"}`, "outside"},
		"braces with a slash":         {"Glob", `{"pattern":"src{/../../,x}other/*"}`, "outside"},
		"braces of one letter":        {"Glob", `{"pattern":"{...0}./other/*"}`, "are unclear"},
		"many braces":                 {"Glob", `{"pattern":"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}/../*"}`, "more than 100 patterns"},
		"brackets":                    {"Glob", `{"pattern":"[.][.]/[.][.]/other/*"}`, "folder above"},
		"brackets of a range":         {"Glob", `{"pattern":"[--0][--0]/other/*"}`, "folder above"},
		"negated brackets":            {"Glob", `{"pattern":"[!a][^a]/other/*"}`, "folder above"},
		"brackets by a name":          {"Glob", `{"pattern":"[[:punct:]][[:punct:]]/other/*"}`, "folder above"},
		"a bracket without an end":    {"Glob", `{"pattern":"*/[./x"}`, "folder above"},
		"an escape":                   {"Glob", `{"pattern":"s*/.\\./.\\./other/*"}`, "contains an escape"},
		"an escape at the start":      {"Glob", `{"pattern":"\\.\\./other/*"}`, "contains an escape"},
		"a dot and a star":            {"Glob", `{"pattern":"*/.*/.*/other/*"}`, "folder above"},
		"a dot and a question":        {"Glob", `{"pattern":"src/.?/.?/other/*"}`, "folder above"},
		"a group":                     {"Glob", `{"pattern":"src/@(..|x)/*"}`, "folder above"},
		"a negated group":             {"Glob", `{"pattern":"src/!(a)/*"}`, "folder above"},
		"a group that may be empty":   {"Glob", `{"pattern":"src/*(a).*(b)./*"}`, "folder above"},
		"a group with a slash":        {"Glob", `{"pattern":"(src/../..|x)/other/*"}`, "folder above"},
		"up after a star":             {"Glob", `{"pattern":"*/../../other/*"}`, "folder above"},
		"a control character":         {"Glob", `{"pattern":".\u0000./*"}`, "control character"},
		"one of several patterns":     {"Glob", `{"patterns":["*.go","../../*"]}`, "outside"},
		"a pattern below one of two":  {"Glob", `{"pattern":"../*","path":"src","directory":"."}`, "outside"},
		"braces to read":              {"read_many_files", `{"include":["{secret,x}/key"]}`, "is in ./secret"},
		"a bracket to read":           {"read_many_files", `{"include":["[s]ecret/key"]}`, "contains ./secret"},
		"a star to read":              {"read_many_files", `{"include":["s*/key"]}`, "contains ./secret"},
		"all of the folder to read":   {"read_many_files", `{"paths":["."]}`, "contains ./secret"},
		"a link below a star":         {"Glob", `{"pattern":"o*/*"}`, "outside"},
		"a link in other letters":     {"Glob", `{"pattern":"O[U]T/*"}`, "outside"},
		"a link further down":         {"Glob", `{"pattern":"p?/pee*/*"}`, "outside"},
		"a link further down to read": {"read_many_files", `{"include":["p1/**/file"]}`, "outside"},
		"a sequence of letters":       {"read_many_files", `{"include":["{s..s}ecret/key"]}`, "are unclear"},
		"letters at the end":          {"Glob", `{"pattern":"secre{s..u}/*"}`, "are unclear"},
		"a sequence of numbers":       {"read_many_files", `{"include":["{1..2}/../secret/key"]}`, "is in ./secret"},
		"a long pattern":              {"Glob", `{"pattern":"` + strings.Repeat("}", 5000) + `"}`, "is longer than 4096 bytes"},
		"a long part":                 {"Glob", `{"pattern":"*` + strings.Repeat("a*", 200) + `"}`, "256 between slashes"},
		"an unknown tool's braces":    {"mcp__x__open", `{"path":"{.,}./other/file"}`, "outside"},
		"an unknown tool's brackets":  {"mcp__x__open", `{"path":"[s]ecret/key"}`, "contains ./secret"},

		// Characters that tools remove or replace.
		"quotes":                   {"Read", `{"file_path":"'ROOT/other/file'"}`, "contains quotes"},
		"a quote at the end":       {"Read", `{"file_path":"secret/key\""}`, "contains quotes"},
		"backquotes":               {"Read", "{\"file_path\":\"`echo /etc/passwd`\"}", "contains quotes"},
		"a shell's quotes":         {"Read", `{"file_path":"$'/etc/passwd'"}`, "contains quotes"},
		"a variable in the middle": {"Read", `{"file_path":"src/${UP}/x"}`, "a variable"},
		"a command in the middle":  {"Read", `{"file_path":"src/$(echo ..)/x"}`, "a variable"},
		"another's home":           {"Read", `{"file_path":"~root/.ssh/id_rsa"}`, "a variable or ~"},
		"an @ before":              {"Read", `{"file_path":"@/etc/passwd"}`, "can replace"},
		"a mark before":            {"Read", `{"file_path":"\ufeff/etc/passwd"}`, "control character"},
		"a space before":           {"Read", `{"file_path":"\u00a0/etc/passwd"}`, "begins or ends with a space"},
		"a tab in the middle":      {"Read", `{"file_path":"src/.\t./../../etc/passwd"}`, "control character"},
		"a line before":            {"Read", `{"file_path":"src/main.go\n/etc/passwd"}`, "control character"},
		"a backslash":              {"Read", `{"file_path":"src\\..\\..\\away\\file"}`, "another operating system"},
		"an escaped space":         {"Read", `{"file_path":"secret\\ /key"}`, "another operating system"},

		// URLs of files.
		"a URL with one slash":       {"Read", `{"file_path":"file:/etc/passwd"}`, "is a URL"},
		"a URL in large letters":     {"Read", `{"file_path":"FILE:///etc/passwd"}`, "is a URL"},
		"a URL with a fragment":      {"Read", `{"file_path":"file:///etc/passwd#/../../../ROOT/w/src/main.go"}`, "names no file here"},
		"a URL with a question":      {"Read", `{"file_path":"file:///etc/passwd?/../../../ROOT/w/src/main.go"}`, "names no file here"},
		"a URL with dots in percent": {"Read", `{"file_path":"file://ROOT/w/%2e%2e/other/file"}`, "outside"},
		"a URL with a zero":          {"Read", `{"file_path":"file://ROOT/w/src%00/x"}`, "control character"},
		"an unknown tool's URL":      {"mcp__x__open", `{"uri":"file:///etc/passwd"}`, "outside"},

		// Members with other names.
		"an unknown tool's file":     {"mcp__x__open", `{"file":"ROOT/other/file"}`, "outside"},
		"an unknown tool's files":    {"mcp__x__open", `{"a":{"files":["src/main.go","secret/key"]}}`, "is in ./secret"},
		"an unknown tool's source":   {"mcp__x__copy", `{"from":"./src/../secret/key","to":"x"}`, "is in ./secret"},
		"an unknown tool's home":     {"mcp__x__copy", `{"source":"~/x"}`, "a variable or ~"},
		"a notebook":                 {"edit_notebook_file", `{"target_notebook":"secret/n.ipynb"}`, "is in ./secret"},
		"a patch by MCP":             {"mcp__x__change", `{"edits":[{"patch":"*** Begin Patch\n*** Update File: secret/key\n"}]}`, "is in ./secret"},
		"a patch's quotes":           {"apply_patch", `{"patch":"--- a/x\n+++ \"b/secr\\145t/key\"\n"}`, "is in ./secret"},
		"a patch's control":          {"apply_patch", `{"patch":"--- a/x\n+++ \"b/src\\000/key\"\n"}`, "control character"},
		"a second edit of MultiEdit": {"MultiEdit", `{"file_path":"src/main.go","edits":[{"file_path":"secret/key"}]}`, "is in ./secret"},

		// Harmless paths that look similar.
		"a pattern of two endings":       {"Glob", `{"pattern":"src/**/*.{ts,tsx}"}`, ""},
		"a pattern of hidden files":      {"Glob", `{"pattern":"src/.[a-z]*"}`, ""},
		"a pattern of letters":           {"Glob", `{"pattern":"src/[A-Z]*/{a,b,c}*.[ch]"}`, ""},
		"a pattern of numbers":           {"Glob", `{"pattern":"src/{1..3}/*"}`, ""},
		"a pattern of names":             {"Glob", `{"pattern":"src/@(a|b)x/*.go"}`, ""},
		"a link that a star stays below": {"Glob", `{"pattern":"i*/*"}`, ""},
		"a file named like a pattern":    {"Read", `{"file_path":"app/[slug]/(group)/{id}.tsx"}`, ""},
		"a file with a dollar":           {"Read", `{"file_path":"routes/$id.tsx"}`, ""},
		"a package with an @":            {"Read", `{"file_path":"@types/node/index.d.ts"}`, ""},
		"an apostrophe in a name":        {"Read", `{"file_path":"docs/it's.md"}`, ""},
		"an unknown tool's page":         {"mcp__x__go", `{"to":"/settings","from":"2026/11/25","target":"//div[1]","uri":"https://x/y"}`, ""},
		"an unknown tool's text":         {"mcp__x__say", `{"to":"C:\\x/y","source":"a/b\nc/d "}`, ""},
	})
}

// Links in procfs are recognised at every mount point.
func TestLinksOfProcessesAreRecognisedByFileSystem(t *testing.T) {
	if got, want := inProcfs("/proc/self"), runtime.GOOS == "linux"; got != want {
		t.Errorf("/proc/self: %v, want %v", got, want)
	}
	if inProcfs(t.TempDir()) {
		t.Error("a folder counts as procfs")
	}
}

// Some file systems treat names as equal that differ here.
func TestARootThatDoesNotExistYetMatchesAllSpellings(t *testing.T) {
	dir := work(t)
	h := permission(t, map[string]any{"allow": []any{dir + "/w"}, "deny": []any{dir + "/w/latér"}, "read_only": []any{dir + "/w/Ro"}})
	for path, want := range map[string]string{
		"LATÉR/x": "not allowed", "late\u0301r": "not allowed", "la\u200dtér/x": "not allowed", "later/x": "", "latéry": "", "rO/x": "read-only", "Rox": "",
	} {
		if got := judged(t, h, dir+"/w", "Write", `{"file_path":"`+path+`"}`); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", path, got, want)
		}
	}
	if got := judged(t, h, dir+"/w", "Read", `{"file_path":"rO/x"}`); got != "" {
		t.Errorf("a readable path is refused: %q", got)
	}
}

// respelled returns spellings of one part of a path that some program treats as equal.
// With patterns, the program expands patterns.
func respelled(part string, patterns bool) []string {
	out := []string{part, "./" + part, "/" + part, part + "/", "src/../" + part, "no/../" + part, part + "/."}
	if !patterns {
		return out
	}
	first, rest := part[:1], part[1:]
	return append(out, "["+first+"]"+rest, "{"+first+",}"+rest, "{"+part+",x}", "{"+part+"}", "{x,{"+part+",y}}", "@("+part+")", "+("+first+")"+rest,
		"\\"+first+rest, "["+first+"-"+first+"]"+rest, first+"{"+rest+",}", "@("+part+"|x)", first+"*", first+"*(x)"+rest)
}

// Random spellings of a forbidden path are refused for every tool.
func TestNoSpellingOfAForbiddenPathPasses(t *testing.T) {
	dir := work(t)
	t.Chdir(dir + "/w")
	h := permission(t, workRules())
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom([]string{"Read", "Write", "Edit", "Grep", "Glob", "read_many_files", "mcp__x__open", "file"}).Draw(t, "tool")
		patterns := tool == "Glob" || tool == "read_many_files" || tool == "mcp__x__open"
		target := rapid.SampledFrom([][]string{{"..", "other", "file"}, {"out", "file"}, {"secret", "key"}, {"hidden", "key"}, {"src", "..", "secret", "key"}}).Draw(t, "target")
		var parts []string
		for i, part := range target {
			// Glob lists names and may list those below a denied root.
			mutable := patterns && !(tool == "Glob" && (part == "secret" || part == "hidden" || i == len(target)-1))
			parts = append(parts, rapid.SampledFrom(respelled(part, mutable)).Draw(t, fmt.Sprint("part ", i)))
		}
		path := strings.TrimLeft(strings.Join(parts, "/"), "/")
		switch rapid.IntRange(0, 3).Draw(t, "start") {
		case 0:
			path = dir + "/w/" + path
		case 1:
			path = "/proc/self/cwd/" + path
		case 2:
			if !patterns {
				path = "file://" + dir + "/w/" + strings.ReplaceAll(url.PathEscape(path), ".", "%2e")
			}
		}
		key := map[string]string{"Glob": "pattern", "read_many_files": "include", "Grep": "path", "mcp__x__open": "path", "file": "uri"}[tool]
		input, err := schema.Marshal(map[string]any{cmp.Or(key, "file_path"): path})
		if err != nil {
			t.Fatal(err)
		}
		if tool == "file" {
			tool = "read_media_file"
		}
		e := &schema.Event{HookType: schema.PreToolUse, ToolName: tool, Cwd: filepath.Join(dir, "w"), ToolInput: input}
		res, err := h.Handle(t.Context(), e)
		if err != nil || res.Decision != schema.Deny {
			t.Errorf("%s of %s passes: %+v %v", tool, path, res, err)
		}
	})
}
