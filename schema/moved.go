package schema

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// WorkspacePath returns the placeholder for the folder of that name in texts.
func WorkspacePath(name string) string { return workspacePrefix + name }

const (
	// OthersFolder is the folder that holds other agents' shared files.
	OthersFolder    = "temp_workspaces"
	workspacePrefix = "hookfabric:" + OthersFolder + "/"
)

// MoveWorkspace replaces an agent's folder in text by the [WorkspacePath] of name.
//
// It replaces only whole paths: /w/a matches in /w/a/b, but not in /w/ab or /x/w/a. Separators
// may be escaped or doubled. It replaces a relative path if the path is the end of the folder
// and unlikely to be another one, such as .massgen/workspaces/a_workspace. Below
// temp_workspaces it uses the name of the agent that owns the files there. It leaves a folder
// without a slash alone, because such a name can be any word.
func MoveWorkspace(text, folder, name string) string {
	return MoveFolder(text, folder, WorkspacePath(name))
}

// MoveFolder is [MoveWorkspace] with an explicit replacement.
func MoveFolder(text, folder, to string) string { return newMover(folder).move(text, to) }

// A mover finds mentions of a folder in texts.
type mover struct {
	// parts are the spellings of the folder's parts, the original first.
	parts           [][]string
	rooted, windows bool
}

func newMover(folder string) *mover {
	m := &mover{rooted: strings.HasPrefix(folder, "/"), windows: strings.Contains(folder, `\`)}
	words := strings.FieldsFunc(folder, func(r rune) bool { return r == '/' || m.windows && r == '\\' })
	if !strings.ContainsAny(strings.TrimRight(folder, `/\`), `/\`) {
		return m
	}
	for _, word := range words {
		quoted := strconv.QuoteToASCII(word)
		spellings := []string{word}
		for _, other := range []string{url.PathEscape(word), quoted[1 : len(quoted)-1], strings.ReplaceAll(word, " ", `\ `), strings.ReplaceAll(word, "&", `\u0026`)} {
			if !slices.Contains(spellings, other) {
				spellings = append(spellings, other)
			}
		}
		m.parts = append(m.parts, spellings)
	}
	return m
}

// move replaces the folder by to, and the folders of other agents by their names.
func (m *mover) move(text, to string) string {
	var b strings.Builder
	done := 0
	words := m.search(text)
	for at := 0; ; {
		start, end, own := words.next(at)
		if start < 0 {
			b.WriteString(text[done:])
			return b.String()
		}
		if from, until, name := m.mention(text, start, end, done, own); from >= 0 {
			b.WriteString(text[done:from])
			b.WriteString(cmp.Or(name, to))
			at, done = until, until
			continue
		}
		_, n := utf8.DecodeRuneInString(text[start:])
		at = start + n
	}
}

// mention returns the range of the path around a found part, and its replacement; empty:
// that of the folder. A from of -1 means that it is not a mention.
func (m *mover) mention(text string, start, end, done int, own bool) (from, until int, name string) {
	if own {
		from = m.begin(text, start, done)
		if from < 0 {
			return -1, 0, ""
		}
		if strings.Contains(text[end:min(len(text), end+maxPath)], OthersFolder) {
			if third, until := thirdFolder(text, end, true); third != "" {
				return from, until, WorkspacePath(third)
			}
		}
		if !ends(text[end:]) {
			from = -1
		}
		return from, end, ""
	}
	if inNameAt(text[:start]) && m.slash(text[:start]) < 0 {
		return -1, 0, ""
	}
	third, until := thirdFolder(text, end, false)
	if third == "" {
		return -1, 0, ""
	}
	if from = pathStart(text, start, done); foreign(text[:from], text[from:start]) {
		return -1, 0, ""
	}
	return from, until, WorkspacePath(third)
}

// A search finds words in a text from left to right. It continues each word from its last
// position, so that a long text takes linear time.
type search struct {
	text  string
	words []string // the last one is the folder of shared workspaces
	found []int    // the next position of each; -1: not searched yet
}

func (m *mover) search(text string) *search {
	s := &search{text: text}
	if len(m.parts) > 0 {
		s.words = slices.Clone(m.parts[len(m.parts)-1])
	}
	s.words = append(s.words, OthersFolder)
	for range s.words {
		s.found = append(s.found, -1)
	}
	return s
}

// next returns the first word at or after at; -1: not found. own means that it is the
// folder's last part.
func (s *search) next(at int) (start, end int, own bool) {
	first := -1
	for i, word := range s.words {
		if s.found[i] < at {
			s.found[i] = len(s.text)
			if j := strings.Index(s.text[at:], word); j >= 0 {
				s.found[i] = at + j
			}
		}
		if s.found[i] < len(s.text) && (first < 0 || s.found[i] < s.found[first]) {
			first = i
		}
	}
	if first < 0 {
		return -1, -1, false
	}
	return s.found[first], s.found[first] + len(s.words[first]), first < len(s.words)-1
}

// begin returns where a mention begins whose last part is at i, and not before done; -1:
// it is not a mention.
func (m *mover) begin(text string, i, done int) int {
	k := len(m.parts) - 1
	for k > 0 {
		j := m.separator(text, i, done)
		if j < 0 {
			break
		}
		word := slices.IndexFunc(m.parts[k-1], func(word string) bool { return strings.HasSuffix(text[done:j], word) })
		if word < 0 {
			break
		}
		i, k = j-len(m.parts[k-1][word]), k-1
	}
	if k == 0 {
		if !m.rooted && begins(text[:i]) {
			return i
		}
		if j := m.separator(text, i, done); m.rooted && j >= 0 {
			if strings.HasSuffix(text[:j], ":") && strings.HasPrefix(text[j:i], "///") {
				j += 2 // the beginning of a URL
			}
			if begins(text[:j]) {
				return j
			}
			// macOS puts this before /tmp and /var.
			if before, ok := strings.CutSuffix(text[done:j], "private"); ok {
				if j = m.separator(text, done+len(before), done); j >= 0 && begins(text[:j]) {
					return j
				}
			}
		}
	}
	return m.relative(text, i, done, k)
}

// relative returns where a mention begins that has the folder's parts from the k-th on;
// -1: it may be of another folder.
func (m *mover) relative(text string, i, done, k int) int {
	last, n := m.parts[len(m.parts)-1][0], len(m.parts)-k
	certain := strings.HasSuffix(last, "_workspace") // MassGen's name of an agent's folder
	if !certain && n < 3 && !(n == 2 && (strings.HasSuffix(last, "workspace") || strings.HasPrefix(m.parts[k][0], "."))) {
		return -1
	}
	if inNameAt(text[:i]) && !begins(text[:i]) {
		return -1
	}
	if certain {
		if i = pathStart(text, i, done); foreign(text[:i], text[i:]) {
			return -1
		}
	}
	for !certain && strings.HasSuffix(text[done:i], "./") {
		i -= 2
		if strings.HasSuffix(text[done:i], ".") {
			i--
		}
	}
	if begins(text[:i]) {
		return i
	}
	return -1
}

// separator returns where the separators begin that end at i; -1: no separator. Dots
// between them count as separators, and so do parts that ".." removes.
func (m *mover) separator(text string, i, done int) int {
	start, done := -1, max(done, i-maxBack)
	for {
		j := m.slash(text[done:i])
		if j < 0 {
			return start
		}
		i = done + j
		start = i
		before := text[done:i]
		switch up := strings.TrimSuffix(before, ".."); {
		case up != before && m.slash(up) >= 0:
			up = up[:m.slash(up)]
			part := strings.LastIndexFunc(up, func(r rune) bool { return !inName(r) && r != '.' }) + 1
			if part == len(up) || m.slash(up[:part]) < 0 {
				return start
			}
			i = done + part
		case strings.HasSuffix(before, ".") && m.slash(before[:len(before)-1]) >= 0:
			i--
		}
	}
}

// slash returns where a separator at the end of text begins; -1: no separator.
func (m *mover) slash(text string) int {
	for _, form := range []string{"/", "%2F", "%2f", "u002f", "u002F"} {
		before, ok := strings.CutSuffix(text, form)
		escapes := len(before) - len(strings.TrimRight(before, `\`))
		if ok && (form[0] != 'u' || escapes > 0) {
			return len(before) - escapes
		}
	}
	if trimmed := strings.TrimRight(text, `\`); m.windows && trimmed != text {
		return len(trimmed)
	}
	return -1
}

// lazyRegexp compiles an expression on first use: `agentshim hook` starts once per tool call, and most calls need none.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// nextPart matches a separator and the following part of a path.
var nextPart = lazyRegexp(`^(?:\\*(?:/|u002[fF])|%2[fF]|\\+)+((?:[\pL\pN_+@~.-]|%(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-9A-Ea-e]))+)`)

// agentName matches the fabric's names of agents without another name.
var agentName = lazyRegexp(`^agent[0-9]+$`)

// A pathPart is a part of a path, and its end in a text.
type pathPart struct {
	name  string
	until int
}

// partsAt returns the parts of the path that continues at i, without dots.
func partsAt(text string, i, most int) (parts []pathPart) {
	for range most {
		at := nextPart().FindStringSubmatchIndex(text[i:min(len(text), i+maxName)])
		if at == nil {
			break
		}
		switch name := text[i+at[2] : i+at[3]]; name {
		case ".":
		case "..":
			parts = parts[:max(0, len(parts)-1)]
		default:
			name = strings.TrimRight(name, ".")
			parts = append(parts, pathPart{name, i + at[2] + len(name)})
		}
		i += at[3]
	}
	return parts
}

const (
	// maxParts is how deep the folder of another agent is searched, like the depth of a
	// snapshot, within maxPath bytes; maxName is the longest name of a file.
	maxParts = 100
	maxPath  = 4096
	maxBack  = 512 // the text between two parts of a path, which is read for each of them
	maxName  = 300
)

// thirdFolder returns the other agent whose folder the path at end names, and where its
// name ends: the part after temp_workspaces, or after an agent's id as in MassGen. Inside
// an agent's folder temp_workspaces is still to come.
func thirdFolder(text string, end int, inside bool) (name string, until int) {
	most := 10 // two, and dots between them
	if inside {
		most = maxParts
	}
	parts := partsAt(text, end, most)
	if inside {
		i := slices.IndexFunc(parts, func(p pathPart) bool { return p.name == OthersFolder })
		if i < 0 {
			return "", 0
		}
		parts = parts[i+1:]
	}
	for _, p := range parts[:min(2, len(parts))] {
		if agentName().MatchString(p.name) {
			return p.name, p.until
		}
	}
	if !inside || len(parts) == 0 || strings.ContainsFunc(parts[0].name, func(r rune) bool { return !isNameByte(r) }) {
		return "", 0
	}
	return parts[0].name, parts[0].until
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// option matches text before a path that is not part of it.
var option = lazyRegexp(`^(-[A-Za-z]+|[@+-])[/.]`)

// pathStart returns where the path begins that continues at i, and not before done.
func pathStart(text string, i, done int) int {
	start := max(done, i-maxPath)
	if j := strings.LastIndexFunc(text[start:i], outsidePath); j >= 0 {
		_, n := utf8.DecodeRuneInString(text[start+j:])
		start += j + n
	}
	if m := option().FindStringSubmatch(text[start:i]); m != nil {
		start += len(m[1])
	}
	return start
}

// outsidePath reports whether r cannot be in an unquoted path.
func outsidePath(r rune) bool { return !inName(r) && !strings.ContainsRune(`/\.`, r) }

// foreign reports whether a path belongs to a URL that is not a file's, or was already
// replaced by its agent's name.
func foreign(before, path string) bool {
	if strings.HasSuffix(before, "hookfabric:") && path == "" {
		return true
	}
	m := scheme().FindStringSubmatch(before[max(0, len(before)-64):])
	return m != nil && !strings.EqualFold(m[1], "file") && strings.HasPrefix(path, "//")
}

// scheme matches text before the path of a URL.
var scheme = lazyRegexp(`([A-Za-z][A-Za-z0-9+.-]*):$`)

// led matches text before a path that could also be part of a name: an option, a sign of
// a diff or of Markdown, an escape, a color.
var led = lazyRegexp("(?:(?:^|[\\s\"'(=,;:`])(?:-[A-Za-z]+|[_+@%-]+)|@|\\\\[abfnrtv]|\\\\u[0-9A-Fa-f]{4}|\\\\x[0-9A-Fa-f]{2}|\\x1b\\[[0-9;]*m|%[0-9A-Fa-f]{2})$")

// begins reports whether a path can begin after before.
func begins(before string) bool {
	if before == "" || strings.HasSuffix(before, "://") {
		return true
	}
	if inNameAt(before) {
		return led().MatchString(before[max(0, len(before)-64):])
	}
	return !strings.HasSuffix(before, "/") && !strings.HasSuffix(before, `\`) && !strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "}")
}

func inNameAt(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before != "" && inName(r)
}

// ends reports whether the name of a folder can end before after.
func ends(after string) bool {
	if strings.HasPrefix(after, "%2F") || strings.HasPrefix(after, "%2f") {
		return true
	}
	r, n := utf8.DecodeRuneInString(after)
	if r == '.' { // the end of a sentence, or part of another name
		r, _ = utf8.DecodeRuneInString(after[n:])
		return len(after) == n || !inName(r) && r != '.'
	}
	return after == "" || !inName(r)
}

// inName reports whether r can be inside a file's name.
func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+@%~", r)
}
