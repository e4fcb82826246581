package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	// maxSpellings is how many patterns the braces of one may expand to.
	maxSpellings = 100
	// maxGlobbed is how many files are checked for links that a pattern matches.
	maxGlobbed = 10_000
	// maxPattern and maxPart are the limits of a pattern and of a part between slashes,
	// in bytes.
	maxPattern, maxPart = 4096, 256
	// globMarks are the special characters of patterns.
	globMarks = `*?[]{}()|\`
)

// patterns takes the folders of path patterns, in each folder that the input names.
func (r *reading) patterns(input map[string]any) error {
	bases := []string{""}
	if len(r.uses) > 0 {
		bases = nil
	}
	for _, use := range r.uses {
		bases = append(bases, use.path)
	}
	for name, v := range input {
		switch wordOf(name) {
		case "pattern", "patterns", "glob", "globs", "globpattern":
		default:
			continue
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, item := range list {
			if r.full() {
				return nil
			}
			text, ok := item.(string)
			if !ok {
				return fmt.Errorf("its %s is not a pattern", name)
			}
			for _, base := range bases {
				if err := r.glob(text, base); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// glob takes the folder in which each expansion of a pattern begins. A pattern that may
// lead up after that is refused, because runtimes match it differently.
func (r *reading) glob(pattern, base string) error {
	if r.full() {
		return nil
	}
	if strings.Contains(pattern, `\`) {
		return fmt.Errorf("the pattern %q contains an escape, which tools read in different ways; name the folder without a pattern", pattern)
	}
	if len(pattern) > maxPattern || slices.ContainsFunc(strings.Split(pattern, "/"), func(part string) bool { return len(part) > maxPart }) {
		return fmt.Errorf("the pattern %.64q… is longer than %d bytes, or than %d between slashes; use several calls", pattern, maxPattern, maxPart)
	}
	spellings, err := unbraced(pattern)
	if err != nil {
		return err
	}
	for _, spelling := range spellings {
		parts := strings.Split(spelling, "/")
		i := slices.IndexFunc(parts, func(part string) bool { return strings.ContainsAny(part, globMarks) })
		if i < 0 {
			i = len(parts)
		}
		if slices.ContainsFunc(parts[i:], climbs) {
			return fmt.Errorf("the pattern %q can lead to a folder above; name that folder without a pattern", pattern)
		}
		fixed := strings.Join(parts[:i], "/")
		if i < len(parts) && i > 0 {
			fixed += "/"
		}
		r.use(cmp.Or(fixed, "."))
		use := &r.uses[len(r.uses)-1]
		use.base, use.rest, use.names = base, parts[i:], r.tool.matches
	}
	return nil
}

// groups matches parentheses, which may match any text; classes matches named sets.
var (
	groups  = regexp.MustCompile(`[?*+@!]?\(.*\)`)
	classes = regexp.MustCompile(`\[\[?[:.=]`)
)

// climbs reports whether a part of a pattern may match ".." in some program. In no
// program does a star match its first dot.
func climbs(part string) bool {
	plain := groups.ReplaceAllString(part, "*")
	if plain == part && part != "" && strings.ContainsRune("*?", rune(part[0])) {
		return false
	}
	matched, err := path.Match(strings.ReplaceAll(plain, "[!", "[^"), "..")
	return matched || err != nil || strings.ContainsAny(plain, "()|") || classes.MatchString(plain)
}

// unbraced expands the braces of a pattern. Braces around one word are a literal name to
// some programs and that word to others, so the result has both.
func unbraced(pattern string) (out []string, err error) {
	if strings.ContainsFunc(pattern, dropped) {
		return nil, fmt.Errorf("the pattern %q contains a control character", pattern)
	}
	literal := strings.NewReplacer("\x00", "{", "\x01", "}")
	for todo := []string{pattern}; len(todo) > 0; {
		p := todo[0]
		todo = todo[1:]
		end := strings.IndexByte(p, '}')
		if end < 0 {
			if out = append(out, literal.Replace(p)); len(out)+len(todo) > maxSpellings {
				return nil, fmt.Errorf("the braces of %.64q stand for more than %d patterns; use several calls", pattern, maxSpellings)
			}
			continue
		}
		start := strings.LastIndexByte(p[:end], '{')
		if start < 0 {
			todo = append(todo, p[:end]+"\x01"+p[end+1:])
			continue
		}
		before, in, after := p[:start], p[start+1:end], p[end+1:]
		words := strings.Split(in, ",")
		if len(words) == 1 {
			words = append(words[:0], numbers(in)...)
		}
		switch {
		case len(words) > 0:
			for _, word := range words {
				todo = append(todo, before+word+after)
			}
		case len(in) > 2 && strings.Contains(in, ".."):
			return nil, fmt.Errorf("the braces {%s} of %q are unclear; write out what they stand for", in, pattern)
		default:
			todo = append(todo, before+in+after, before+"\x00"+in+"\x01"+after)
		}
		if len(todo) > maxSpellings {
			return nil, fmt.Errorf("the braces of %.64q stand for more than %d patterns; use several calls", pattern, maxSpellings)
		}
	}
	return out, nil
}

// numbers expands a sequence such as 1..3; nil: it is not a simple one, or too long.
func numbers(in string) (all []string) {
	var from, to int
	if len(in) > 12 {
		return nil
	}
	if n, err := fmt.Sscanf(in, "%d..%d", &from, &to); n != 2 || err != nil || in != fmt.Sprintf("%d..%d", from, to) || to-from >= maxSpellings {
		return nil
	}
	for n := from; n <= to; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

// judgeMatches returns why a tool may not use the files that a pattern matches below an
// allowed folder, or nil. A matching link may lead elsewhere.
func (r *rules) judgeMatches(use pathUse, folder string) error {
	left := maxGlobbed
	return r.judgeRest(use, folder, use.rest, &left)
}

func (r *rules) judgeRest(use pathUse, folder string, rest []string, left *int) error {
	if len(rest) == 0 || use.names && (len(rest) == 1 || rest[0] == "**") {
		return nil // the tool lists names and does not follow links
	}
	entries, err := readSome(folder, *left+1)
	if err != nil {
		return fmt.Errorf("a pattern below %s can match links in a folder that the worker cannot read: %w; name a folder further down", use.path, err)
	}
	if *left -= len(entries); *left < 0 {
		return fmt.Errorf("a pattern below %s matches more than %d files; name a folder further down", use.path, maxGlobbed)
	}
	part := lowered(rest[0])
	for _, entry := range entries {
		below := strings.TrimRight(folder, "/") + "/" + entry.Name()
		link := entry.Type()&os.ModeSymlink != 0
		switch {
		case !mayMatch(part, entry.Name()):
			continue
		case link:
			err = r.judge(pathUse{path: below, write: use.write, deep: use.deep}, "")
		}
		if err != nil {
			return err
		}
		next := rest[1:]
		if rest[0] == "**" {
			next = rest
		}
		if (entry.IsDir() || link && rest[0] != "**") && len(next) > 0 {
			if err := r.judgeRest(use, below, next, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSome reads at most n entries of a folder. A folder that does not exist has no
// entries.
func readSome(folder string, n int) ([]os.DirEntry, error) {
	f, err := os.OpenFile(folder, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) || notFolder(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, errors.Join(err, f.Close())
}

// lowered prepares a part of a pattern for [mayMatch].
func lowered(part string) string {
	return strings.ReplaceAll(groups.ReplaceAllString(strings.ToLower(part), "*"), "[!", "[^")
}

// mayMatch reports whether a part of a pattern may match a name in some program.
func mayMatch(part, name string) bool {
	matched, err := path.Match(part, strings.ToLower(name))
	return matched || err != nil || strings.Contains(part, "**")
}
