package builtin

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// The shims' kinds of a runtime's tools must not contradict those of path_permission.
func TestShimsAndPathPermissionAgreeOnKinds(t *testing.T) {
	of := map[toolKind]string{writeTool: schema.KindWrite, patchTool: schema.KindWrite, readTool: schema.KindRead, shellTool: schema.KindShell}
	known := 0
	for _, runtime := range []string{"agy", "claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen"} {
		tools := schema.Tools(runtime)
		if len(tools) == 0 {
			t.Errorf("the tools of %s are unknown", runtime)
		}
		for name, kind := range tools {
			here, byName := fileTools[wordOf(name)]
			switch kind {
			case schema.KindShell, schema.KindRead, schema.KindWrite:
			default:
				if byName {
					t.Errorf("%s's %s is %q to its shim, and %q to path_permission", runtime, name, kind, of[here.kind])
				}
				continue
			}
			known++
			e := &schema.Event{ToolName: name, ToolKind: kind}
			if got := of[toolOf(e).kind]; got != kind {
				t.Errorf("%s's %s is %q to its shim, and %q to path_permission", runtime, name, kind, got)
			}
			if byName && of[here.kind] != kind {
				t.Errorf("%s's %s is %q to its shim, and %q to path_permission where no shim says so", runtime, name, kind, of[here.kind])
			}
		}
	}
	if known == 0 {
		t.Error("no tool was compared with the other list")
	}
}

// The shim and path_permission find the same files in a Codex patch.
func TestShimAndPathPermissionReadPatchesAlike(t *testing.T) {
	for _, patch := range []string{
		"*** Begin Patch\n*** Add File: a b.txt\n+one\n*** Update File: old\n*** Move to: new\n@@\n-x\n+y\n*** Delete File: gone\n*** End Patch\n",
		" *** Add File:a\r*** Delete File: b\v*** Update File: c\u2028*** Move to: d\x1c*** Add File: e",
		"nothing at all",
		"*** Add File:\n*** Add File: \t x \t",
	} {
		uses, err := patchUses(patch, "")
		if err != nil {
			t.Fatal(err)
		}
		paths := schema.PatchedFiles(patch)
		if len(uses) != len(paths) {
			t.Fatalf("%q: %v and %v", patch, uses, paths)
		}
		for i, path := range paths {
			if uses[i].path != path {
				t.Errorf("%q: %q and %q", patch, uses[i].path, path)
			}
		}
	}
}

// A runtime's name for a server's tool differs from the server's own name.
func TestPathsOfServerToolsAreFoundInEveryRuntime(t *testing.T) {
	dir := work(t)
	h := permission(t, map[string]any{"allow": []any{dir + "/w/src"}})
	for _, c := range []struct{ runtime, tool string }{
		{"claude", "mcp__fs__write_file"}, {"cursor", "MCP:write_file"}, {"copilot", "fs-write_file"}, {"copilot", "fs/write_file"}, {"opencode", "fs_write_file"},
	} {
		for path, refused := range map[string]bool{"/w/src/new.go": false, "/other/file": true} {
			e := &schema.Event{HookType: schema.PreToolUse, Runtime: c.runtime, ToolName: c.tool, Cwd: dir + "/w",
				ToolInput: jsontext.Value(`{"path":"` + dir + path + `"}`)}
			e.ToolKind, e.ToolArgs = schema.ToolFacts(e.Runtime, e.ToolName, e.ToolInput)
			res, err := h.Handle(t.Context(), e)
			if err != nil || (res.Decision == schema.Deny) != refused {
				t.Errorf("%s, %s, %s: %+v, %v", c.runtime, c.tool, path, res, err)
			}
		}
	}
}

// Paths that only the shim finds are checked, too.
func TestPathsFromTheShimAreChecked(t *testing.T) {
	dir := work(t)
	h := permission(t, map[string]any{"allow": []any{dir + "/w/src"}})
	e := &schema.Event{HookType: schema.PreToolUse, Runtime: "copilot", ToolName: "frobnicate", ToolKind: schema.KindWrite, Cwd: dir + "/w",
		ToolInput: jsontext.Value(`{"path":"` + dir + `/w/src/a","where":"` + dir + `/other/file"}`)}
	if res, err := h.Handle(t.Context(), e); err != nil || res.Decision != schema.None {
		t.Fatalf("without facts: %+v, %v", res, err)
	}
	e.ToolArgs = jsontext.Value(`{"paths":["` + dir + `/w/src/a","` + dir + `/other/file"]}`)
	if res, err := h.Handle(t.Context(), e); err != nil || res.Decision != schema.Deny {
		t.Errorf("with facts: %+v, %v", res, err)
	}
}
