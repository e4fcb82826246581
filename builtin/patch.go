package builtin

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// patchesOf are the files that the patches of a patch tool's input change.
func patchesOf(input map[string]any) (uses []pathUse, err error) {
	base := workdir(input)
	for _, text := range textsOf(input) {
		more, err := patchUses(text, base)
		if err != nil {
			return nil, err
		}
		uses = append(uses, more...)
	}
	return uses, nil
}

// The words by which a shell command is seen to apply a patch that stands in it,
// and to change its folder before.
var (
	appliesPatch = regexp.MustCompile(`\b(?:apply_?patch|patch|git\s+(?:apply|am))\b|\*\*\* Begin Patch`)
	changesInto  = regexp.MustCompile(`^\s*cd\s+([\w./@+-]+|'[^']*'|"[^"$` + "`" + `\\]*")\s*(?:&&|;|\n)\s*apply_?patch\b`)
	changesDir   = regexp.MustCompile(`\b(?:cd|pushd|popd|chdir)\b|\s-[Cd]\b|--directory`)
)

// shellPatches are the files that patches inside of a shell command change. What
// else the command does nobody can tell.
func shellPatches(input map[string]any) (all []pathUse, err error) {
	for _, text := range textsOf(input) {
		if !appliesPatch.MatchString(text) {
			continue
		}
		base := workdir(input)
		uses, err := patchUses(text, base)
		if err != nil {
			return nil, err
		}
		if len(uses) == 0 {
			if strings.Contains(text, "*** Begin Patch") {
				return nil, errors.New("its patch names no file that the hook can check")
			}
			continue
		}
		before := text[:firstHeader(text)]
		if m := changesInto.FindStringSubmatch(before); m != nil {
			into, err := pathUse{base: strings.Trim(m[1], `'"`)}.folder(base)
			if err != nil {
				return nil, err
			}
			for i := range uses {
				uses[i].base = into
			}
		} else if changesDir.MatchString(before) {
			return nil, errors.New("the command changes its folder before it applies a patch; apply the patch in a separate command, with absolute paths")
		}
		all = append(all, uses...)
	}
	return all, nil
}

// textsOf are the texts of an input. Each word of a list is one: of a shell and
// its program, the program is read as if it stood alone.
func textsOf(input map[string]any) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(input)) {
		switch v := input[name].(type) {
		case string:
			if word := wordOf(name); word != "description" && word != "workdir" && word != "cwd" {
				out = append(out, v)
			}
		case []any:
			for _, item := range v {
				if s, ok := item.(string); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// workdir is the folder that an input says to work in; empty: it says none.
func workdir(input map[string]any) string {
	for _, name := range []string{"workdir", "cwd", "working_directory", "dir_path", "directory"} {
		if dir, ok := input[name].(string); ok && dir != "" {
			return dir
		}
	}
	return ""
}

// codexHeaders begin the lines of Codex's patches that name files.
var codexHeaders = []string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"}

// diffHeaders begin the lines of diffs that name files.
var diffHeaders = []string{"*** ", "--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ", "Index: "}

// hunkLine matches a line of a context diff, or of a Codex patch, that only looks like a header of a diff.
var hunkLine = regexp.MustCompile(`^(?:---|\*\*\*) \d+(?:,\d+)? (?:----|\*\*\*\*)$|^\*\*\* (?:Begin Patch|End Patch|End of File)\s*$`)

// header reports whether a line of a patch names files.
func header(line string) bool {
	trimmed := strings.TrimSpace(line)
	for _, h := range codexHeaders {
		if strings.HasPrefix(trimmed, h) {
			return true
		}
	}
	for _, h := range diffHeaders {
		if strings.HasPrefix(line, h) && !hunkLine.MatchString(line) {
			return true
		}
	}
	return strings.HasPrefix(line, "diff --git ")
}

// firstHeader is where the first line of a patch begins that names files; -1:
// none does.
func firstHeader(text string) int {
	for at, line := range linesOf(text) {
		if header(line) {
			return at
		}
	}
	return -1
}

// linesOf are the lines of a patch, and where they begin: all that any program
// takes for one. To some a form feed ends a line, and what follows names a file.
func linesOf(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(text); {
			line, end := text[at:], len(text)
			if i := strings.IndexFunc(line, schema.EndsLine); i >= 0 {
				_, n := utf8.DecodeRuneInString(line[i:])
				line, end = line[:i], at+i+n
			}
			if !yield(at, line) {
				return
			}
			at = end
		}
	}
}

// patchUses are the files that a patch changes, in Codex's form or as a diff. A
// line that only looks as if it named one counts, too: nobody can tell how the
// program that reads the patch counts its lines.
func patchUses(text, base string) (uses []pathUse, err error) {
	for _, line := range linesOf(text) {
		if path, ok := codexPath(line); ok {
			uses = append(uses, pathUse{path: path, base: base, write: true})
			continue
		}
		paths, err := diffPaths(line)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if slices.Contains(strings.Split(path, "/"), "..") {
				return nil, fmt.Errorf("the path %q in its patch leads to a folder above", path)
			}
			uses = append(uses, diffUses(path, base)...)
		}
	}
	return uses, nil
}

// codexPath is the path that a line of a Codex patch names.
func codexPath(line string) (path string, ok bool) {
	line = strings.TrimSpace(line)
	for _, h := range codexHeaders {
		if path, ok := strings.CutPrefix(line, h); ok {
			return strings.TrimSpace(path), true
		}
	}
	return "", false
}

// diffPaths are the paths that a line of a diff names.
func diffPaths(line string) ([]string, error) {
	if names, ok := strings.CutPrefix(line, "diff --git "); ok {
		return gitPaths(names)
	}
	for _, h := range diffHeaders {
		if name, ok := strings.CutPrefix(line, h); ok && !hunkLine.MatchString(line) {
			path, err := diffPath(name)
			return []string{path}, err
		}
	}
	return nil, nil
}

// gitPaths are the two paths of a line "diff --git a/x b/x".
func gitPaths(names string) ([]string, error) {
	if !strings.Contains(names, `"`) {
		// Names may have spaces: the two are the same but for what stands before.
		for i, r := range names {
			if left, right := names[:i], names[i:]; r == ' ' && withoutPrefix(left) == withoutPrefix(right[1:]) {
				return []string{left, right[1:]}, nil
			}
		}
		if two := strings.Fields(names); len(two) == 2 {
			return two, nil
		}
	}
	var out []string
	for rest := strings.TrimSpace(names); rest != ""; rest = strings.TrimSpace(rest) {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			path, _ := strconv.Unquote(quoted)
			out, rest = append(out, path), rest[len(quoted):]
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		out, rest = append(out, word), after
	}
	if len(out) != 2 {
		return nil, fmt.Errorf("the hook cannot tell which files the line %q of its patch means", "diff --git "+names)
	}
	return out, nil
}

// diffPath is the path of a header, without the time that may follow it.
func diffPath(name string) (string, error) {
	name, _, _ = strings.Cut(name, "\t")
	name = strings.TrimSpace(name)
	if !strings.HasPrefix(name, `"`) {
		return name, nil
	}
	path, err := strconv.Unquote(name)
	if err != nil {
		return "", fmt.Errorf("the hook cannot tell which file %s in its patch means", name)
	}
	return path, nil
}

// diffUses are the files that a path of a diff may mean: programs leave the
// first part of it out, or do not.
func diffUses(path, base string) []pathUse {
	if path == "" || path == "/dev/null" {
		return nil
	}
	likely, other := withoutPrefix(path), path
	if likely == path {
		_, other, _ = strings.Cut(path, "/")
	}
	uses := []pathUse{{path: likely, base: base, write: true}}
	if other = strings.TrimLeft(other, "/"); other != "" {
		uses = append(uses, pathUse{path: other, base: base, write: true, doubtful: true})
	}
	return uses
}

// withoutPrefix is a path without what git puts before it.
func withoutPrefix(path string) string {
	if len(path) > 2 && path[1] == '/' && strings.ContainsRune("abciow", rune(path[0])) {
		return path[2:]
	}
	return path
}
