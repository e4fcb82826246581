package builtin

import (
	"strings"
	"testing"
)

// Tools name their files in many ways. Allowed calls check that the rule is not too
// strict.
func TestPathsAreFoundInAllMembersOfTools(t *testing.T) {
	dir := work(t)
	t.Chdir(dir + "/w")
	h := permission(t, workRules())
	for _, c := range []struct {
		tool, input string
		refused     bool
	}{
		{"mcp__git__git_status", `{"repo_path":"ROOT/other"}`, true},
		{"mcp__x__save", `{"output_path":"ROOT/other/x"}`, true},
		{"mcp__x__save", `{"outputPath":"../other/x"}`, true},
		{"mcp__x__save", `{"output_file":"../other/x"}`, true},
		{"mcp__x__save", `{"output_dir":"../other"}`, true},
		{"mcp__x__save", `{"image_path":"secret/key"}`, true},
		{"mcp__x__save", `{"local_path":"secret/key"}`, true},
		{"mcp__x__save", `{"root_path":"../other"}`, true},
		{"mcp__x__save", `{"project_root":"ROOT/other"}`, true},
		{"mcp__x__save", `{"cwd":"ROOT/other","path":"file"}`, true},
		{"mcp__x__save", `{"workdir":"../other","path":"file"}`, true},
		{"mcp__x__save", `{"working_directory":"../other","path":"file"}`, true},
		{"mcp__x__save", `{"base_dir":"../other","path":"file"}`, true},
		{"mcp__x__save", `{"target_directories":["../other"]}`, true},
		{"mcp__x__save", `{"directories":["../other"]}`, true},
		{"mcp__x__save", `{"folders":["../other"]}`, true},
		{"mcp__playwright__browser_navigate", `{"url":"file:///etc/passwd"}`, true},
		{"mcp__playwright__browser_navigate", `{"url":"FILE:/etc/passwd"}`, true},
		{"WebFetch", `{"url":"file:///etc/passwd","prompt":"x"}`, true},
		{"mcp__x__open", `{"href":"file://ROOT/w/secret/key"}`, true},
		{"mcp__x__open", `{"resources":["file://ROOT/w/secret/key"]}`, true},
		{"mcp__x__write", `{"files":{"../other/x":"text"}}`, true},
		{"mcp__x__write", `{"paths":{"ROOT/other/x":"text"}}`, true},
		{"mcp__x__open", `{"file_uri":"file://ROOT/w/secret/key"}`, true},
		{"mcp__x__open", `{"textDocument":{"uri":"file://ROOT/w/secret/key"}}`, true},
		{"mcp__x__open", `{"pathname":"ROOT/other/file"}`, true},
		{"mcp__x__open", `{"filename":"ROOT/other/file"}`, true},
		{"mcp__x__open", `{"file.path":"ROOT/other/file"}`, true},
		{"mcp__x__open", `{"file path":"ROOT/other/file"}`, true},
		{"mcp__x__open", `{"arguments":{"file_path":"ROOT/other/file"}}`, true},
		{"mcp__x__open", `{"paths":"[\"ROOT/other/file\"]"}`, true},
		{"Read", `{"file_path":"src/main.go","path":"../other/file"}`, true},
		{"read", `{"filePath":"secret//key"}`, true},
		{"Read", `{"file_path":"secret/key/"}`, true},
		{"Read", `{"file_path":"./././secret/./key"}`, true},
		{"Read", `{"file_path":"//////etc/passwd"}`, true},
		{"Read", `{"file_path":"src/main.go/../../secret/key"}`, true},
		{"Read", `{"file_path":"in/../secret/key"}`, true},
		{"Read", `{"file_path":"hidden/../secret/pub/../key"}`, true},
		{"Read", `{"file_path":"alias/secret/key"}`, false},
		{"Read", `{"file_path":"../alias/secret/key"}`, true},
		{"Read", `{"file_path":"ROOT/alias/./hidden/key"}`, true},
		{"Read", `{"file_path":"/proc/self/fd/../cwd/secret/key"}`, true},
		{"Read", `{"file_path":"/proc/self/map_files/x"}`, true},
		{"Read", `{"file_path":"/dev/./fd/0"}`, true},
		{"Read", `{"file_path":"/dev/../dev/fd/0"}`, true},
		{"Read", `{"file_path":"/proc/fs/../self/root/etc/passwd"}`, true},
		{"Glob", `{"pattern":"+(.)+(.)/other/*"}`, true},
		{"Glob", `{"pattern":"?(.)?(.)/other/*"}`, true},
		{"Glob", `{"pattern":"@(.)@(.)/other/*"}`, true},
		{"Glob", `{"pattern":"{,.}{,.}/other/*"}`, true},
		{"Glob", `{"pattern":"{{.,.}.,}/other/*"}`, true},
		{"Glob", `{"pattern":"src/**/{..,x}/../other/*"}`, true},
		{"Glob", `{"pattern":"*(.)/other/*"}`, true},
		{"Glob", `{"pattern":"[.-/][.-/]/other/*"}`, true},
		{"Glob", `{"pattern":"[[.period.]][[.period.]]/other/*"}`, true},
		{"Glob", `{"pattern":"[[=.=]][[=.=]]/other/*"}`, true},
		{"Glob", `{"pattern":".[!/]/other/*"}`, true},
		{"Glob", `{"pattern":"!(x)/other/*"}`, true},
		{"Glob", `{"path":"in","pattern":"../../other/*"}`, true},
		{"Glob", `{"path":"deep","pattern":"../../../../other/*"}`, true},
		{"Glob", `{"pattern":"%2e%2e/other/*"}`, false},
		{"Glob", `{"pattern":"(^a)/other/*"}`, true},
		{"Glob", `{"pattern":"..(#q)/other/*"}`, true},
		{"Glob", `{"pattern":"**/./.(.)/other"}`, true},
		{"Glob", `{"pattern":"file:///etc/*"}`, true},
		{"Glob", `{"pattern":"'..'/other/*"}`, true},
		{"Glob", `{"pattern":"\"..\"/other/*"}`, true},
		{"Glob", `{"pattern":"~+/../other/*"}`, true},
		{"Grep", `{"pattern":"x"}`, true},
		{"Grep", `{"pattern":"x","path":""}`, true},
		{"Grep", `{"pattern":"x","path":null}`, true},
		{"Grep", `{"pattern":"x","path":"./"}`, true},
		{"Grep", `{"pattern":"x","path":"hidden"}`, true},
		{"Grep", `{"pattern":"x","paths":["src","hidden"]}`, true},
		{"apply_patch", `{"patch":"*** secret/key\t2026\n--- src/a/b/c.go\t2026\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n"}`, true},
		{"apply_patch", `{"patch":"*** ROOT/other/file\n--- src/a/b/c.go\n"}`, true},
		{"Bash", `{"command":"patch <<E\n*** secret/key\n--- src/a/b/c.go\nE"}`, true},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: src/main.go\n*** Move to: ../other/file\n*** End Patch"}`, true},
		{"apply_patch", `{"input":"*** Begin Patch\r*** Add File: secret/x\r+x\r*** End Patch"}`, true},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Add File:secret/x\n+x\n*** End Patch"}`, true},
		{"apply_patch", `{"input":"*** Begin Patch\n***  Add File: secret/x\n+x\n*** Add File: src/x\n*** End Patch"}`, false},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Add File: src/x\n+x\n*** End Patch"}`, false},
		{"apply_patch", `{"patch":"--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\nrename to secret/key\n"}`, true},
		{"apply_patch", `{"patch":"diff --git a/src/x b/secret/key\nsimilarity index 100%\n"}`, true},
		{"mcp__x__apply", `{"diff":"Index: secret/key\n"}`, true},
		{"mcp__x__apply", `{"unified_diff":"--- secret/key\n+++ secret/key\n"}`, true},
		{"mcp__x__apply", `{"patch_text":"*** Begin Patch\n*** Delete File: secret/key\n"}`, true},
		{"mcp__filesystem__move_file", `{"source":"src/main.go","destination":"secret/x"}`, true},
		{"mcp__filesystem__read_multiple_files", `{"paths":["src/main.go","secret/key"]}`, true},
		{"mcp__x__open", `{"from":"secret/key"}`, true},
		{"mcp__x__open", `{"src":"out/file"}`, false},
		{"mcp__x__open", `{"source_file":"out/file"}`, true},
		{"mcp__x__open", `{"to":"hidden/key"}`, true},
		{"mcp__x__page", `{"xpath":"//div[1]","json_path":"$.a/b","profile":"default","sort_dir":"asc","text":"file: a b","redirect_uri":"/back"}`, false},
		{"mcp__x__open", `{"dir":"secret"}`, true},
		{"mcp__x__open", `{"dir":"..","file":"x"}`, true},
		{"mcp__x__open", `{"dir":"src","file":"main.go"}`, false},
		{"Write", `{"file_path":"src/x","content":"file:/etc/passwd"}`, false},
		{"mcp__x__write", `{"files":{"src/x":"text"}}`, false},
		{"apply_patch", `{"patch":"*** src/x\n--- src/y\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n"}`, false},
	} {
		t.Run(c.tool+" "+c.input, func(t *testing.T) {
			if got := judged(t, h, dir+"/w", c.tool, strings.ReplaceAll(c.input, "ROOT", dir)); (got != "") != c.refused {
				t.Errorf("%q", got)
			}
		})
	}
}
