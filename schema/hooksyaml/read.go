package hooksyaml

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// The limits of a file. The reader checks them before it does any work.
const (
	// MaxFile is the largest file, in bytes.
	MaxFile = 8 << 20
	// MaxHooks is how many hooks one file may declare.
	MaxHooks = 20000
	// maxMarks limits the structuring characters of a file, and so its values. The parser
	// needs a thousand times a value's own size.
	maxMarks = 500_000
	// maxDepth limits how deep values nest.
	maxDepth = 64
	// maxExpansion limits how many values all aliases together stand for.
	maxExpansion = 100_000
)

// Options adapts [Read]. The zero Options check a file without its conditions.
type Options struct {
	// CheckCondition compiles the text of a `when`. This package cannot do that itself. Read
	// reports the error as a fault, and each of [schema.ConditionFaults] at its own place in
	// the file. Nil: do not check conditions.
	CheckCondition func(string) error
	// CheckExpression compiles the expression of an option of a hook of type cel, like
	// CheckCondition. Nil: do not check expressions.
	CheckExpression func(option, expr string) error
	// Taken reports whether a hook elsewhere already has the name. Read rejects such a name in
	// the file, and derives other ones. Nil: no name is taken.
	Taken func(name string) bool
	// Packs are the shipped packs by name, each with the text of its file of rules.
	Packs map[string]string
	// ReadFile returns a file that is named in the configuration, relative to its folder. Nil: there is no folder.
	ReadFile func(name string) ([]byte, error)
	// Now is the time of reading, with which exceptions are compared. Zero: do not compare them.
	Now time.Time
}

// A Document is the content of a valid file.
type Document struct {
	// Config has no version and no folder. The caller sets them.
	Config schema.Config
	// Warnings lists skipped keys of MassGen, and places that deserve a look.
	Warnings []Warning
	// Files are the files that the configuration names, by these names.
	Files map[string]string
}

// Read reads a configuration. It uses name only in faults. Its error has the type [Faults].
func Read(name string, data []byte, o Options) (*Document, error) {
	r := newReader(name, data, o)
	if root := r.parse(r.source.text); root != nil {
		before := len(r.faults)
		r.tree(root)
		if len(r.faults) == before {
			packs := r.document(root)
			r.nameHooks(packs)
			AddPresets(&r.config)
		}
	}
	if len(r.faults)+len(r.elsewhere) > 0 {
		return nil, append(r.report(), r.elsewhere...)
	}
	return &Document{Config: r.config, Warnings: r.warnings, Files: r.files}, nil
}

func newReader(name string, data []byte, o Options) *reader {
	text := strings.TrimPrefix(string(data), "\ufeff")
	return &reader{file: name, source: source{text: text}, options: o, hidden: map[int]int{}}
}

// A reader reads one file.
type reader struct {
	file     string
	source   source
	options  Options
	config   schema.Config
	drafts   []draft
	faults   []Fault
	warnings []Warning
	// elsewhere are the faults in files of rules.
	elsewhere Faults
	// files are the files of rules.
	files map[string]string
	// beyond counts the faults that were not stored.
	beyond int
	// hidden are the lines with a likely secret, each with the column from which faults
	// do not show it, because faults are logged and stored.
	hidden map[int]int
	// massgen means that the file is MassGen's, so that unknown keys are tolerated.
	massgen bool
	// overflow means that the limit of hooks was already reported.
	overflow bool
}

func (r *reader) faultAt(line, column int, message, hint string) {
	if len(r.faults) >= maxKept {
		r.beyond++
		return
	}
	r.faults = append(r.faults, Fault{File: r.file, Line: line, Column: column, Message: message, Hint: hint})
}

// report returns the faults with their lines.
func (r *reader) report() Faults {
	fs := ordered(r.faults, r.beyond)
	for i := range fs {
		fs[i].Source = window(r.shown(fs[i]), fs[i].Column)
	}
	return fs
}

// shown returns the line of a fault up to where it is hidden.
func (r *reader) shown(f Fault) string {
	line := r.source.line(f.Line)
	from, ok := r.hidden[f.Line]
	switch {
	case !ok:
		return line
	case f.Column > from:
		return ""
	}
	return head(line, from-1)
}

// hide hides n, and the rest of its line, in faults.
func (r *reader) hide(n *yaml.Node) {
	if from, ok := r.hidden[n.Line]; !ok || n.Column < from {
		r.hidden[n.Line] = n.Column
	}
}

func (r *reader) fault(n *yaml.Node, message, hint string) {
	r.faultAt(n.Line, n.Column, message, hint)
}

func (r *reader) warn(n *yaml.Node, message string) {
	r.warnings = append(r.warnings, Warning{File: r.file, Line: n.Line, Column: n.Column, Message: message})
}

// parse returns the file's only document, or nil after a fault.
func (r *reader) parse(text string) *yaml.Node {
	if !r.readable(text) {
		return nil
	}
	loader, err := yaml.NewLoader(strings.NewReader(text), yaml.WithPlugin(limits{}))
	if err != nil {
		r.faultAt(1, 1, err.Error(), "")
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		r.empty()
		return nil
	} else if err != nil {
		r.syntax(err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		r.fault(&second, "a second document begins here", "remove the line --- and put everything into one document")
	case !errors.Is(err, io.EOF):
		r.syntax(err)
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		r.empty()
		return nil
	}
	return root
}

func (r *reader) empty() {
	r.faultAt(1, 1, "the file is empty", "write hooks: {} if no hooks are wanted")
}

// readable rejects files that are not text, or too large.
func (r *reader) readable(text string) bool {
	if len(text) > MaxFile {
		r.source.text = ""
		r.faultAt(1, 1, fmt.Sprintf("the file has %d bytes; the limit is %d", len(text), MaxFile), "write several hooks as one with a broader matcher")
		return false
	}
	marks := 0
	for at, c := range text {
		if forbidden(c) || c == utf8.RuneError && text[at] != 0xef {
			r.unreadable(text, at)
			return false
		}
		switch c {
		case ',', ':', '-', '[', '{', '\n':
			marks++
		}
	}
	if marks > maxMarks {
		r.faultAt(1, 1, "the file has too many values", fmt.Sprintf("a configuration has at most %d hooks", MaxHooks))
	}
	return marks <= maxMarks
}

// forbidden reports whether YAML forbids a character.
func forbidden(c rune) bool {
	switch {
	case c == '\t', c == '\n', c == '\r', c == 0x85:
		return false
	case c < ' ', c >= 0x7f && c < 0xa0, c == 0xfeff, c == 0xfffe, c == 0xffff:
		return true
	}
	return false
}

func (r *reader) unreadable(text string, at int) {
	head := text[:at]
	line := strings.Count(head, "\n") + 1
	column := utf8.RuneCountInString(head[strings.LastIndexByte(head, '\n')+1:]) + 1
	c, size := utf8.DecodeRuneInString(text[at:])
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"), c == 0 && at == 1, c == 0 && at == 0 && len(text) > 1 && text[1] >= ' ':
		r.source.text = ""
		r.faultAt(1, 1, "the file is not UTF-8 but looks like UTF-16", "save it as UTF-8")
	case c == utf8.RuneError && size == 1:
		r.faultAt(line, column, fmt.Sprintf("the byte %#02x is not valid UTF-8", text[at]), "save the file as UTF-8")
	default:
		r.faultAt(line, column, fmt.Sprintf("the character %U is not allowed in a YAML file", c), `remove it, or write it as "\u`+fmt.Sprintf("%04X", c)+`" in double quotes`)
	}
}

// limits limits nesting during parsing.
type limits struct{}

// CheckDepth rejects values that nest too deep.
func (limits) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return errTooDeep
	}
	return nil
}

// CheckAlias accepts all aliases. The reader counts them exactly in the parsed tree.
func (limits) CheckAlias(int, int) error { return nil }

var errTooDeep = errors.New("too deep")
