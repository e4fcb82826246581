// Package tables writes the figures of runs into a page of Markdown, so that no figure
// in it is copied by hand. A page marks the place:
//
//	<!-- figures: calls -->
//
// Between this line and the next line <!-- end --> the page has the view of that name
// (views.yaml). A view selects figures by name from the files in a folder: bench.json,
// overload.json. If the folder has no file of that run, the view is empty.
package tables

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

const ending = "<!-- end -->"

// Fill replaces the text between the markers of a page with the figures in the folder dir, and keeps
// the rest of the page.
func Fill(page, dir string) (string, error) {
	var filled strings.Builder
	var errs []error
	marker := regexp.MustCompile(`(?m)^<!-- figures: (.*) -->\n`)
	for {
		at := marker.FindStringSubmatchIndex(page)
		if at == nil {
			filled.WriteString(page)
			return filled.String(), errors.Join(errs...)
		}
		name := page[at[2]:at[3]]
		filled.WriteString(page[:at[1]])
		page = page[at[1]:]
		end := strings.Index(page, ending)
		if next := marker.FindStringIndex(page); end < 0 || next != nil && next[0] < end {
			return "", fmt.Errorf("the marker of the figures %q has no %s after it", name, ending)
		}
		page = page[end:]
		view, err := View(dir, name)
		errs = append(errs, err)
		if view != "" {
			filled.WriteString("\n" + view + "\n")
		}
	}
}

// View returns one view of the figures in the folder dir.
func View(dir, name string) (string, error) {
	made, ok := views()[name]
	if !ok {
		return "", fmt.Errorf("the name %q is unknown; write one of %s", name, strings.Join(Names(), ", "))
	}
	return made(dir)
}

// Names returns the names of all views.
func Names() []string { return slices.Sorted(maps.Keys(views())) }

// A layout selects figures.
type layout struct {
	Grids    map[string][]grid
	Absolute map[string][][2]string
	Series   [][5]string
}

//go:embed views.yaml
var viewsYAML []byte

// views maps names to the functions that make a view of a folder.
func views() map[string]func(dir string) (string, error) {
	var l layout
	if err := yaml.Load(viewsYAML, &l, yaml.WithKnownFields()); err != nil {
		panic(err) // a test reads it
	}
	all := map[string]func(string) (string, error){
		"runs": runs, "checks": checks, "over": over, "model": needs, "account": accounts,
		"growth": func(dir string) (string, error) { return growth(dir, l.Series) },
	}
	for name, rows := range l.Absolute {
		all[name] = func(dir string) (string, error) { return absolute(dir, rows, columns()[name]) }
	}
	for name, g := range l.Grids {
		all[name] = func(dir string) (string, error) { return viewed(dir, g) }
	}
	return all
}

// accounts returns what the processor time of calls is for.
func accounts(dir string) (string, error) {
	var d report.Document
	if there, err := read(dir, "account", &d); !there {
		return "", err
	}
	return report.MarkdownTable(d.Tables[0]), nil
}

// files returns the runs in the order in which the pages list them.
func files() []string {
	return []string{"bench", "account", "record", "loop", "shim", "notice", "state", "scale", "saturate", "faults", "overload", "freeze", "cluster"}
}

// read reads the file of a run into v; false: the folder has no such file.
func read(dir, run string, v any) (bool, error) {
	name := filepath.Join(dir, run+".json")
	body, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading figures: %w", err)
	}
	if err := schema.Unmarshal(body, v); err != nil {
		return false, fmt.Errorf("%s is not a report of `loadtest %s`: %w", name, run, err)
	}
	return true, nil
}
