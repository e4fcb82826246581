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

// patchesOf returns the files that the patches in a patch tool's input change.
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

// These patterns recognise a shell command that contains and applies a patch, and one
// that changes its folder first.
var (
	appliesPatch = regexp.MustCompile(`\b(?:apply_?patch|patch|git\s+(?:apply|am))\b|\*\*\* Begin Patch`)
	changesInto  = regexp.MustCompile(`^\s*cd\s+([\w./@+-]+|'[^']*'|"[^"$` + "`" + `\\]*")\s*(?:&&|;|\n)\s*apply_?patch\b`)
	changesDir   = regexp.MustCompile(`\b(?:cd|pushd|popd|chdir)\b|\s-[Cd]\b|--directory`)
)

// shellPatches returns the files that patches inside a shell command change. Other
// effects of the command are unknown.
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

// textsOf returns the texts of an input. Each word of a list is one, so that in a list of
// a shell and its program the program is read like a single text.
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

// workdir returns the working folder that an input names; empty: it names none.
func workdir(input map[string]any) string {
	for _, name := range []string{"workdir", "cwd", "working_directory", "dir_path", "directory"} {
		if dir, ok := input[name].(string); ok && dir != "" {
			return dir
		}
	}
	return ""
}

// diffHeaders begin the lines that name files in diffs.
var diffHeaders = []string{"*** ", "--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ", "Index: "}

// hunkLine matches a line of a context diff or Codex patch that begins like a header of a
// diff.
var hunkLine = regexp.MustCompile(`^(?:---|\*\*\*) \d+(?:,\d+)? (?:----|\*\*\*\*)$|^\*\*\* (?:Begin Patch|End Patch|End of File)\s*$`)

// header reports whether a line of a patch names files.
func header(line string) bool {
	if len(schema.PatchedFiles(line)) > 0 {
		return true
	}
	for _, h := range diffHeaders {
		if strings.HasPrefix(line, h) && !hunkLine.MatchString(line) {
			return true
		}
	}
	return strings.HasPrefix(line, "diff --git ")
}

// firstHeader returns the offset of the first line that names files; -1: there is no such
// line.
func firstHeader(text string) int {
	for at, line := range linesOf(text) {
		if header(line) {
			return at
		}
	}
	return -1
}

// linesOf yields the lines of a patch and their offsets, split at everything that some
// program treats as a line end. For some, a line ends at a form feed, and the text after
// it can name a file.
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

// patchUses returns the files that a patch changes, in Codex's form or as a diff. A line
// that only looks like a header counts, too, because programs count the lines of a hunk
// in different ways.
func patchUses(text, base string) (uses []pathUse, err error) {
	for _, line := range linesOf(text) {
		if codex := schema.PatchedFiles(line); len(codex) > 0 {
			uses = append(uses, pathUse{path: codex[0], base: base, write: true})
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

// diffPaths returns the paths in a header of a diff.
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

// gitPaths returns the two paths of a line "diff --git a/x b/x".
func gitPaths(names string) ([]string, error) {
	if !strings.Contains(names, `"`) {
		// Names may contain spaces. The two names are equal except for their prefix.
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

// diffPath returns the path of a header, without the time that may follow it.
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

// diffUses returns the files that a path of a diff may mean: some programs strip its
// first part, others do not.
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

// withoutPrefix removes the prefix that git puts before a path.
func withoutPrefix(path string) string {
	if len(path) > 2 && path[1] == '/' && strings.ContainsRune("abciow", rune(path[0])) {
		return path[2:]
	}
	return path
}
