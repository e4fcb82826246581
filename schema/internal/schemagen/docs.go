package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// docs are the comments of types and fields: "Event", "Event.ToolName".
type docs map[string]string

// readDocs reads the comments of the types in a folder.
func readDocs(dir string) (docs, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %w", dir, os.ErrNotExist)
	}
	d, set := docs{}, token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading comments: %w", err)
		}
		ast.Inspect(parsed, d.collect)
	}
	return d, nil
}

func (d docs) collect(n ast.Node) bool {
	decl, ok := n.(*ast.GenDecl)
	if !ok {
		return true
	}
	for _, spec := range decl.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		d[t.Name.Name] = forPeople(decl.Doc.Text())
		if s, ok := t.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					d[t.Name.Name+"."+name.Name] = forPeople(f.Doc.Text())
				}
			}
		}
	}
	return false
}

var (
	docLink = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	goNil   = regexp.MustCompile(`\b([Nn]il|None)\b`)
)

// forPeople makes a Go comment one line for readers who do not know Go.
func forPeople(comment string) string {
	s := strings.Join(strings.Fields(comment), " ")
	return goNil.ReplaceAllString(docLink.ReplaceAllString(s, "$1"), "absent")
}

// of returns the comment of a field, with the field's name in JSON.
func (d docs) of(t reflect.Type, f reflect.StructField) string {
	comment := d[t.Name()+"."+f.Name]
	if rest, ok := strings.CutPrefix(comment, f.Name); ok {
		return jsonName(f) + rest
	}
	return comment
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
