package tables

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
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
