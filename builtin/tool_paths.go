package builtin

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// A pathUse is one path that a tool is to use.
type pathUse struct {
	path string
	// base is the folder that a relative path begins in; empty: the agent's.
	base string
	// write: the tool may change what is there. deep: it uses all that is below.
	write, deep bool
	// doubtful: the path may mean this, too, so it must not be what is denied.
	doubtful bool
}

// folder is the folder that the path begins in, for an agent in cwd.
func (u pathUse) folder(cwd string) (string, error) {
	if u.base == "" {
		return cwd, nil
	}
	if why := unreadable(u.base); why != "" {
		return "", fmt.Errorf("the folder %q %s", u.base, why)
	}
	if filepath.IsAbs(u.base) || cwd == "" {
		return u.base, nil
	}
	// Not joined: what is taken out here could not be followed any more.
	return strings.TrimRight(cwd, "/") + "/" + u.base, nil
}

// toolUses is what can be told of the files that a tool call uses.
type toolUses struct {
	uses  []pathUse
	shell bool
}

// usesOf reads the input of a tool call. An error says why it can not be told
// which files it uses, although it is a tool that uses files.
func usesOf(e *schema.Event) (toolUses, error) {
	tool := toolOf(e)
	input := map[string]any{}
	if len(e.ToolInput) > 0 {
		if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
			return toolUses{}, errors.New("its input can not be read")
		}
	}
	switch tool.kind {
	case shellTool:
		uses, err := shellPatches(input)
		return toolUses{uses, true}, err
	case patchTool:
		uses, err := patchesOf(input)
		if err == nil && len(uses) == 0 {
			err = errors.New("its patch names no file that can be judged")
		}
		return toolUses{uses, false}, err
	}
	r := reading{tool: tool}
	err := r.object(input, true)
	if err == nil {
		err = r.pattern(input)
	}
	if err == nil && tool.certain && len(r.uses) == 0 {
		if !tool.roams {
			return toolUses{}, errors.New("it names no file that can be judged")
		}
		r.use(".")
	}
	r.told(e)
	return toolUses{r.uses, false}, err
}

// told adds the paths that the shim found and we did not: it knows the tools of
// its runtime.
func (r *reading) told(e *schema.Event) {
	var args struct {
		Paths []string `json:"paths"`
	}
	if e.ToolKind != schema.KindWrite && e.ToolKind != schema.KindRead || len(e.ToolArgs) == 0 || schema.Unmarshal(e.ToolArgs, &args) != nil {
		return
	}
	for _, path := range args.Paths {
		if !slices.ContainsFunc(r.uses, func(u pathUse) bool { return u.path == path }) {
			r.use(path)
		}
	}
}

// A reading collects the paths of an input.
type reading struct {
	tool fileTool
	uses []pathUse
}

func (r *reading) use(path string) {
	r.uses = append(r.uses, pathUse{path: path, write: r.tool.kind == writeTool, deep: r.tool.deep})
}

// object takes the paths of an object, and of those inside of it. The more
// general names count where the tool is known, and not deeper down.
func (r *reading) object(o map[string]any, top bool) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		var err error
		switch word := wordOf(name); {
		case pathName(word), top && r.tool.certain && fileName(word), r.tool.globs && word == "include":
			err = r.value(name, o[name])
		case patchName(word):
			err = r.patch(o[name])
		default:
			err = r.inside(o[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value takes the value of a member that holds paths.
func (r *reading) value(name string, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if v == "" && (r.tool.roams || !r.tool.certain) {
			return nil // as if it were absent
		}
		if r.tool.globs {
			return r.glob(v, "")
		}
		r.use(v)
		return nil
	case []any:
		for _, item := range v {
			if err := r.value(name, item); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		return r.object(v, false)
	}
	if r.tool.certain {
		return fmt.Errorf("its %s is no path", name)
	}
	return nil
}

// inside looks for paths in the value of any other member.
func (r *reading) inside(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := r.inside(item); err != nil {
				return err
			}
		}
	case map[string]any:
		return r.object(v, false)
	}
	return nil
}

// patch takes the paths of a patch, if it is one.
func (r *reading) patch(v any) error {
	text, ok := v.(string)
	if !ok {
		return r.inside(v)
	}
	uses, err := patchUses(text, "")
	r.uses = append(r.uses, uses...)
	return err
}

// pattern takes the folder of a pattern that is one of paths.
func (r *reading) pattern(input map[string]any) error {
	if !r.tool.matches {
		return nil
	}
	base := ""
	if len(r.uses) > 0 {
		base = r.uses[0].path
	}
	for name, v := range input {
		if pattern, ok := v.(string); ok && wordOf(name) == "pattern" {
			if err := r.glob(pattern, base); err != nil {
				return err
			}
		}
	}
	return nil
}

// glob takes the folder that a glob begins in.
func (r *reading) glob(pattern, base string) error {
	fixed, rest := pattern, ""
	if i := strings.IndexAny(pattern, "*?[]{}()|"); i >= 0 {
		cut := strings.LastIndex(pattern[:i], "/") + 1
		fixed, rest = pattern[:cut], pattern[cut:]
	}
	if strings.Contains(rest, "..") || slices.ContainsFunc([]string{"{/", ",/", "(/", "|/", "{~", ",~"}, func(s string) bool { return strings.Contains(rest, s) }) {
		return fmt.Errorf("nobody can tell where the pattern %q leads", pattern)
	}
	if fixed != "" || base == "" {
		r.use(orElse(fixed, "."))
		last := &r.uses[len(r.uses)-1]
		last.base, last.deep = base, last.deep || r.tool.globs && rest != ""
	}
	return nil
}

// wordOf is a name as it is compared: runtimes write file_path, filePath and FilePath.
func wordOf(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// pathName reports whether members of that name hold paths, whatever the tool.
func pathName(word string) bool {
	switch word {
	case "path", "paths", "filepath", "filepaths", "absolutepath", "relativepath", "notebookpath", "dirpath", "directorypath",
		"targetfile", "targetpath", "searchpath", "searchdirectory", "sourcepath", "destinationpath", "oldpath", "newpath":
		return true
	}
	return false
}

// fileName reports whether members of that name hold paths if the tool is one
// that uses files.
func fileName(word string) bool {
	switch word {
	case "file", "files", "filename", "filenames", "dir", "directory", "folder", "root", "uri",
		"source", "destination", "src", "dst", "dest", "from", "to", "target":
		return true
	}
	return false
}

// patchName reports whether members of that name hold patches.
func patchName(word string) bool { return word == "patch" || word == "patchtext" || word == "diff" }
