package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxFact is the longest text of tool_args. Longer texts are left out, so that a
	// condition on them cannot be evaluated, and counts as true.
	maxFact = 64 << 10
	// maxPaths is the maximum number of paths in tool_args. If there are more, all are
	// left out.
	maxPaths = 1000
)

// ToolFacts returns the kind of a runtime's tool and the facts of a call, for policies that
// work with every runtime. The facts have the same names in all runtimes and never contain the
// contents of files. The kind is empty for a tool without a kind. The facts are empty if the
// input does not have them.
func ToolFacts(runtime, name string, input jsontext.Value) (kind string, args jsontext.Value) {
	t, known := toolOf(runtime, name)
	if !known {
		if server, tool, ok := mcpName(runtime, name); ok {
			return KindMCP, MCPFacts(server, tool)
		}
		return "", nil
	}
	if t.kind == "" {
		return "", nil
	}
	var in map[string]any
	if input.Kind() != '{' || Unmarshal(input, &in) != nil {
		var text string
		if t.text == "" || input.Kind() != '"' || Unmarshal(input, &text) != nil {
			return t.kind, nil
		}
		in = map[string]any{t.text: text} // some builds send only the patch
	}
	switch t.kind {
	case KindShell:
		return t.kind, facts{"command": command(in[t.command]), "cwd": first(in, strings.Split(t.cwd, "|")...)}.json()
	case KindSubagent:
		return t.kind, facts{"agent": first(in, "subagent_type", "agent_type", "agent_name", "agent")}.json()
	case KindWeb:
		return t.kind, facts{"url": first(in, "url", "Url"), "query": first(in, "query")}.json()
	}
	return t.kind, t.files(in)
}

// MCPFacts returns the facts of a call of an MCP server's tool; an empty name is unknown.
func MCPFacts(server, tool string) jsontext.Value {
	return facts{"server": server, "tool": tool}.json()
}

// files returns the paths that a call names.
func (t tool) files(in map[string]any) jsontext.Value {
	var paths []string
	if t.text != "" {
		for _, member := range []string{t.text, "command", "input", "patch", "patchText"} {
			if text, ok := in[member].(string); ok {
				paths = append(paths, PatchedFiles(text)...)
			}
		}
	}
	paths = named(in, paths)
	if len(paths) == 0 && t.roams {
		paths = []string{"."}
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) == 0 || len(paths) > maxPaths {
		return nil
	}
	return facts{"paths": paths}.json()
}

// named adds the paths in an object and in objects inside it, under all names.
func named(v any, paths []string) []string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			paths = named(item, paths)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if namesPaths(name) {
				paths = texts(v[name], paths)
			} else {
				paths = named(v[name], paths)
			}
		}
	}
	return paths
}

func texts(v any, paths []string) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return append(paths, v)
		}
	case []any:
		for _, item := range v {
			paths = texts(item, paths)
		}
	default:
		return named(v, paths)
	}
	return paths
}

// namesPaths reports whether members of that name hold paths. Runtimes write file_path,
// filePath and FilePath.
func namesPaths(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "_", "") {
	case "path", "paths", "filepath", "filepaths", "absolutepath", "relativepath", "notebookpath", "dirpath", "directorypath",
		"targetfile", "targetpath", "targetnotebook", "targetdirectory", "searchpath", "searchdirectory", "include":
		return true
	}
	return false
}

// command returns a shell's command: a text, or a list of words.
func command(v any) any {
	words, ok := v.([]any)
	if !ok {
		return v
	}
	parts := make([]string, 0, len(words))
	for _, w := range words {
		s, ok := w.(string)
		if !ok {
			return nil
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func first(in map[string]any, names ...string) any {
	for _, name := range names {
		if v, ok := in[name]; ok {
			return v
		}
	}
	return nil
}

// facts are the known facts of a call. json drops empty, overlong and non-text values.
type facts map[string]any

func (f facts) json() jsontext.Value {
	maps.DeleteFunc(f, func(_ string, v any) bool {
		switch v := v.(type) {
		case string:
			return v == "" || len(v) > maxFact
		case []string:
			return slices.ContainsFunc(v, func(s string) bool { return len(s) > maxFact })
		}
		return true
	})
	if len(f) == 0 {
		return nil
	}
	data, err := Marshal(map[string]any(f))
	if err != nil {
		return nil
	}
	return data
}

// PatchedFiles returns the files that a patch in Codex's form names, in order. It includes
// lines that only look like a file header, because programs that apply patches split lines
// differently.
func PatchedFiles(patch string) (paths []string) {
	for line := range strings.FieldsFuncSeq(patch, EndsLine) {
		line = strings.TrimSpace(line)
		for _, header := range [...]string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"} {
			if path, ok := strings.CutPrefix(line, header); ok {
				paths = append(paths, strings.TrimSpace(path))
			}
		}
	}
	return paths
}

// EndsLine reports whether some program treats r as the end of a line of a patch.
func EndsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}
