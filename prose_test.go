package hookfabric_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A phrase is wording that STYLE rules out, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// phrases returns the rules. They match whole words, in upper or lower case.
func phrases() (all []phrase) {
	for pattern, instead := range map[string]string{
		`nobody|somebody`:                            `name the actor: "no agent", "an operator", "the broker"`,
		`whoever|whatever`:                           `name the actor or the thing: "the client that …", "any value"`,
		`who (asks|has|knows|comes|sends|listens)`:   `name the actor: "the client", "the agent that …"`,
		`what is (said|told|asked|known|there|left)`: `name the thing: "the answer", "the request", "the remaining items"`,
		`(is|are|was|were) none`:                     `"there is no …", or "… is not a …"`,
		`anew`:                                       `"again", "new", or "recreate"`,
		`meanwhile`:                                  `"during this time", "while …", or leave it out`,
		`by that`:                                    `"therefore", "with it", or repeat the noun`,
		`go(es)? by|went by`:                         `"use", "follow", or "pass"`,
		`com(e|es|ing) along|came along`:             `"are bundled", "arrive"`,
		`for ever`:                                   `"forever", "without an end", or the limit`,
		`can not`:                                    `"cannot"`,
	} {
		all = append(all, phrase{regexp.MustCompile(`(?i)\b(` + pattern + `)\b`), instead})
	}
	return all
}

// exceptions returns the places that may use such a phrase: quotations and foreign names.
func exceptions() []string {
	return []string{}
}

// maxSentence is how many words a sentence of a document may have.
const maxSentence = 35

// A passage is a piece of text with its place.
type passage struct {
	file string
	line int
	text string
}

func (p passage) at() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// TestTextsUsePlainLanguage finds phrases that the rules of language exclude.
func TestTextsUsePlainLanguage(t *testing.T) {
	if n := len(exceptions()); n > 10 {
		t.Errorf("%d exceptions; ten are allowed", n)
	}
	found := make(map[string]int)
	for _, p := range passages(t) {
		for _, rule := range phrases() {
			for _, at := range rule.pattern.FindAllStringIndex(p.text, -1) {
				place := passage{p.file, p.line + strings.Count(p.text[:at[0]], "\n"), p.text[at[0]:at[1]]}
				if slices.Contains(exceptions(), place.file+": "+place.text) {
					continue
				}
				found[path.Ext(p.file)]++
				t.Errorf("%s: %q; write %s", place.at(), place.text, rule.instead)
			}
		}
	}
	if len(found) > 0 {
		t.Logf("phrases by kind of file: %v", found)
	}
}

// TestDocumentsHaveShortSentences finds sentences above maxSentence words.
func TestDocumentsHaveShortSentences(t *testing.T) {
	for _, file := range textFiles(t, ".md") {
		for _, p := range sentences(file, readDoc(t, file)) {
			if n := len(strings.Fields(p.text)); n > maxSentence {
				t.Errorf("%s: %d words in one sentence; split it into sentences of at most %d:\n\t%s", p.at(), n, maxSentence, p.text)
			}
		}
	}
}

// passages returns all text that the rules hold for: documents and files that users read
// as they are, the strings of programs, package comments, and the comments of exported
// names in public packages.
func passages(t *testing.T) (all []passage) {
	t.Helper()
	for _, file := range textFiles(t, ".md", ".yaml", ".yml", ".json", ".sh", ".py", ".pyi", ".ts", ".js", ".service", ".conf", ".tmpl", ".tape", ".html", ".css") {
		if !strings.HasPrefix(file, "loadtest/figures/") { // records of runs
			text := readDoc(t, file)
			if strings.HasPrefix(path.Ext(file), ".py") {
				text = strings.ReplaceAll(text, "is None", "==None") // code
			}
			all = append(all, passage{file, 1, text})
		}
	}
	for _, file := range textFiles(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			all = append(all, goPassages(t, file)...)
		}
	}
	return all
}

// textFiles returns the files with one of the extensions, without data of tests.
func textFiles(t *testing.T, extensions ...string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (slices.Contains([]string{".git", "bin", "testdata", "node_modules"}, d.Name())):
			return fs.SkipDir
		case !d.IsDir() && slices.Contains(extensions, path.Ext(file)):
			all = append(all, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isPublic reports whether users read about the exported names of the package in dir.
func isPublic(dir string) bool {
	return slices.Contains([]string{"schema", "bus/client", "bus/agent/loop", "bus/agent/render", "bus/agent/llm", "workers"}, dir)
}

// goPassages returns the strings and the public comments of a Go file.
func goPassages(t *testing.T, file string) (all []passage) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	add := func(at token.Pos, text string) {
		all = append(all, passage{file, set.Position(at).Line, text})
	}
	comment := func(g *ast.CommentGroup) {
		if g != nil {
			add(g.Pos(), commentText(g))
		}
	}
	comment(f.Doc)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				add(n.Pos(), text)
			}
		}
		return true
	})
	if isPublic(path.Dir(file)) {
		for _, g := range exportedComments(f) {
			comment(g)
		}
	}
	return all
}

func commentText(g *ast.CommentGroup) string {
	lines := make([]string, len(g.List))
	for i, c := range g.List {
		lines[i] = strings.TrimSpace(strings.Trim(c.Text, "/*"))
	}
	return strings.Join(lines, "\n")
}

// exportedComments returns the comments of exported names, their fields and methods.
func exportedComments(f *ast.File) (all []*ast.CommentGroup) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				all = append(all, d.Doc)
			}
		case *ast.GenDecl:
			all = append(all, d.Doc)
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					all = append(all, n.Doc, n.Comment)
					return n.Name.IsExported()
				case *ast.ValueSpec:
					all = append(all, n.Doc, n.Comment)
				case *ast.Field:
					all = append(all, n.Doc, n.Comment)
				}
				return true
			})
		}
	}
	return all
}

// sentences returns the sentences of a document in Markdown. Code counts as one word; an
// item of a list, a heading and a cell of a table end a sentence.
func sentences(file, doc string) (all []passage) {
	doc = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllStringFunc(doc, func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n"))
	})
	doc = regexp.MustCompile("`[^`\n]+(\n[^`\n]+)?`").ReplaceAllStringFunc(doc, func(s string) string {
		return "code" + strings.Repeat("\n", strings.Count(s, "\n"))
	})
	doc = regexp.MustCompile(`\]\([^)\s]*\)`).ReplaceAllString(doc, "]")
	end := regexp.MustCompile(`[.!?]["')\]*_]*(\s|$)|\n\s*\n|\n\s*([-*>#|]|\d+\.)|\|`)
	line, from := 1, 0
	add := func(to int) {
		text := strings.TrimSpace(doc[from:to])
		if text != "" {
			lead := doc[from : from+strings.Index(doc[from:to], text)]
			all = append(all, passage{file, line + strings.Count(lead, "\n"), strings.Join(strings.Fields(text), " ")})
		}
		line += strings.Count(doc[from:to], "\n")
		from = to
	}
	for _, at := range end.FindAllStringIndex(doc, -1) {
		add(at[1])
	}
	add(len(doc))
	return all
}
