package builtin

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/hookfabric/hookfabric/schema"
)

// A pathUse is one path that a tool will use.
type pathUse struct {
	path string
	// base is the folder of a relative path; empty: the agent's.
	base string
	// write means that the tool may change the file. deep means that it uses everything
	// below it.
	write, deep bool
	// doubtful means that this is only one possible meaning of the path: it must not be
	// denied, but need not be allowed. guess means that it may not be a path at all, so
	// it need not be readable as one.
	doubtful, guess bool
	// rest are the further parts of a pattern that begins at the path. names means that
	// the tool lists matching files and opens none of them.
	rest  []string
	names bool
}

// folder returns the folder of the path, for an agent in cwd.
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
	// The parts are concatenated, because path.Join would remove dots before links are
	// followed.
	return strings.TrimRight(cwd, "/") + "/" + u.base, nil
}

// places returns the absolute path and the places that it may mean, for an agent in cwd.
func (u pathUse) places(cwd string) (path string, places []place, linked bool, err error) {
	folder, err := u.folder(cwd)
	if err != nil {
		return "", nil, false, err
	}
	if path, err = absolute(u.path, folder); err == nil {
		places, linked, err = placesOf(path, u.write)
	}
	if err != nil {
		err = fmt.Errorf("the path %q %w", u.path, err)
	}
	return path, places, linked, err
}

// toolUses are the files that a tool call uses, as far as known.
type toolUses struct {
	uses  []pathUse
	shell bool
}

// usesOf reads the input of a tool call. It returns an error if the tool uses files and
// it is unclear which.
func usesOf(e *schema.Event) (toolUses, error) {
	tool := toolOf(e)
	input := map[string]any{}
	if len(e.ToolInput) > 0 {
		if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
			return toolUses{}, errors.New("the hook cannot read its input")
		}
	}
	switch tool.kind {
	case shellTool:
		uses, err := shellPatches(input)
		return toolUses{uses, true}, err
	case patchTool:
		uses, err := patchesOf(input)
		if err == nil && len(uses) == 0 {
			err = errors.New("its patch names no file that the hook can check")
		}
		return toolUses{uses, false}, err
	}
	r := reading{tool: tool}
	err := r.object(input, true)
	if err == nil && tool.matches {
		err = r.patterns(input)
	}
	if err == nil && tool.certain && len(r.uses) == 0 {
		if !tool.roams {
			return toolUses{}, errors.New("it names no file that the hook can check")
		}
		r.use(".")
	}
	r.addFacts(e)
	return toolUses{r.uses, false}, err
}

// addFacts adds the paths that the shim found, because it knows the tools of its runtime.
func (r *reading) addFacts(e *schema.Event) {
	var args struct {
		Paths []string `json:"paths"`
	}
	if e.ToolKind != schema.KindWrite && e.ToolKind != schema.KindRead || len(e.ToolArgs) == 0 || schema.Unmarshal(e.ToolArgs, &args) != nil {
		return
	}
	slices.Sort(args.Paths)
	for _, path := range slices.Compact(args.Paths) {
		if r.full() {
			return
		}
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

// full reports whether there are more paths than a call may have.
func (r *reading) full() bool { return len(r.uses) > maxUses }

func (r *reading) use(path string) {
	if r.full() {
		return
	}
	r.uses = append(r.uses, pathUse{path: path, write: r.tool.kind == writeTool, deep: r.tool.deep})
}

// object takes the paths of an object and of objects inside it. Generic names such as
// from count only for known tools, at the top.
func (r *reading) object(o map[string]any, top bool) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		var err error
		switch word := wordOf(name); {
		case pathName(word), top && r.tool.certain && fileName(word), r.tool.globs && word == "include":
			err = r.value(name, o[name])
		case fileName(word):
			r.guess(word, o[name])
			err = r.inside(o[name])
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
			return nil // like an absent member
		}
		if !r.tool.globs {
			r.use(v)
		}
		if r.tool.globs || !r.tool.certain && strings.ContainsAny(v, globMarks) {
			return r.glob(v, "")
		}
		return nil
	case []any:
		for _, item := range v {
			if err := r.value(name, item); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		r.names(wordOf(name), v)
		return r.object(v, false)
	}
	if r.tool.certain {
		return fmt.Errorf("its %s is not a path", name)
	}
	return nil
}

// guess takes the texts of a member that holds paths in some tools, if they look like
// paths. In an unknown tool "from" may also be a date, a branch or a page.
func (r *reading) guess(word string, v any) {
	switch v := v.(type) {
	case string:
		file := isFileURL(v) || strings.HasPrefix(v, "~/") || folderWord(word) && v != ""
		slash := strings.Contains(v, "/")
		if !file && (!slash && (!fileWord(word) || v == "") || strings.Contains(v, "://")) {
			return
		}
		r.use(v)
		if !file && (!slash || !fileWord(word)) {
			use := &r.uses[len(r.uses)-1]
			use.doubtful, use.guess, use.deep = true, true, false
		}
	case []any:
		for _, item := range v {
			r.guess(word, item)
		}
	case map[string]any:
		r.names(word, v)
	}
}

// names takes the member names of an object that maps files to values such as their
// texts.
func (r *reading) names(word string, o map[string]any) {
	if strings.HasSuffix(word, "files") || strings.HasSuffix(word, "paths") {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			r.guess("file", name)
		}
	}
}

// inside looks for paths in the value of any other member. Browsers open file URLs, too.
func (r *reading) inside(v any) error {
	switch v := v.(type) {
	case string:
		if url := strings.TrimSpace(v); !r.tool.certain && isFileURL(url) && !strings.ContainsFunc(url, unicode.IsSpace) {
			r.use(url)
		}
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

// patch takes the paths of a patch, if v is one.
func (r *reading) patch(v any) error {
	text, ok := v.(string)
	if !ok {
		return r.inside(v)
	}
	uses, err := patchUses(text, "")
	r.uses = append(r.uses, uses...)
	return err
}

// wordOf normalises a name, because runtimes write file_path, filePath and FilePath.
func wordOf(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// pathName reports whether members of that name hold paths in any tool.
func pathName(word string) bool {
	switch word {
	case "path", "paths", "filepath", "filepaths", "absolutepath", "relativepath", "notebookpath", "dirpath", "directorypath",
		"targetfile", "targetpath", "targetnotebook", "targetdirectory", "searchpath", "searchdirectory", "sourcepath", "destinationpath", "oldpath", "newpath":
		return true
	}
	return false
}

// fileName reports whether members of that name hold paths in tools that use files.
func fileName(word string) bool {
	switch word {
	case "root", "uri", "source", "destination", "src", "dst", "dest", "from", "to", "target":
		return true
	}
	return fileWord(word)
}

// fileWord reports whether a name is about files in any tool.
func fileWord(word string) bool {
	if endsIn(word, "xpath", "jsonpath") { // a path inside a document
		return false
	}
	return folderWord(word) || endsIn(word, "path", "paths", "pathname", "file", "files", "filename", "filenames", "root")
}

// folderWord reports whether a name is about folders in any tool.
func folderWord(word string) bool {
	return endsIn(word, "dir", "dirs", "directory", "directories", "folder", "folders", "cwd")
}

func endsIn(word string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(word, end) })
}

// patchName reports whether members of that name hold patches.
func patchName(word string) bool { return endsIn(word, "patch", "patchtext", "diff") }
